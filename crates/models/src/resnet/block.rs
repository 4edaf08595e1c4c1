//! The two residual blocks: basic (two 3x3) and bottleneck (1x1, 3x3, 1x1).

use burn::module::Module;
use burn::nn::conv::Conv2d;
use burn::nn::pool::MaxPool2d;
use burn::nn::{BatchNorm, BatchNormConfig};
use burn::tensor::{Device, Tensor};
use leanburn_levers::checkpoint::Link;
use leanburn_levers::{Activation, Checkpoint, Output, conv2d};

use super::conv;
use super::fold::norm_act;

/// What the blocks of one stage have in common.
pub(super) struct BlockConfig {
    pub width: usize,
    pub bottleneck: bool,
    pub zero_init: bool,
}

impl BlockConfig {
    pub fn channels_out(&self) -> usize {
        if self.bottleneck {
            self.width * 4
        } else {
            self.width
        }
    }

    pub fn init(&self, channels_in: usize, stride: usize, device: &Device) -> Block {
        let (width, out) = (self.width, self.channels_out());
        let norm = |channels| Some(BatchNormConfig::new(channels).init(device));
        let last_norm = |channels| {
            let mut norm: BatchNorm = BatchNormConfig::new(channels).init(device);
            if self.zero_init {
                norm.gamma = norm.gamma.map(|gamma| gamma.zeros_like().require_grad());
            }
            Some(norm)
        };
        let downsample = (stride != 1 || channels_in != out).then(|| Downsample {
            conv: conv([channels_in, out], 1, stride, device),
            bn: norm(out),
        });
        if self.bottleneck {
            Block {
                conv1: conv([channels_in, width], 1, 1, device),
                bn1: norm(width),
                conv2: conv([width, width], 3, stride, device),
                bn2: norm(width),
                conv3: Some(conv([width, out], 1, 1, device)),
                bn3: last_norm(out),
                downsample,
                outputs: Output::Kept,
            }
        } else {
            Block {
                conv1: conv([channels_in, width], 3, stride, device),
                bn1: norm(width),
                conv2: conv([width, width], 3, 1, device),
                bn2: last_norm(width),
                conv3: None,
                bn3: None,
                downsample,
                outputs: Output::Kept,
            }
        }
    }
}

/// Brings the block's input to the shape of its output; `downsample.0` and `.1` in torchvision.
#[derive(Module, Debug)]
pub struct Downsample {
    /// 1x1 convolution.
    pub conv: Conv2d,
    /// Its norm.
    pub bn: Option<BatchNorm>,
}

/// A residual block; the third convolution makes it a bottleneck.
#[derive(Module, Debug)]
pub struct Block {
    /// 1x1 in a bottleneck, else 3x3 with the stride.
    pub conv1: Conv2d,
    /// Norm of the first convolution.
    pub bn1: Option<BatchNorm>,
    /// 3x3; has the stride in a bottleneck.
    pub conv2: Conv2d,
    /// Norm of the second convolution.
    pub bn2: Option<BatchNorm>,
    /// 1x1, bottleneck only.
    pub conv3: Option<Conv2d>,
    /// Norm of the third convolution.
    pub bn3: Option<BatchNorm>,
    /// Where input and output differ in shape.
    pub downsample: Option<Downsample>,
    /// Whether the backward finds the norms' outputs kept.
    #[module(skip)]
    pub(super) outputs: Output,
}

impl Block {
    /// Those on the way that is not the shortcut, first to last.
    pub(super) fn convolutions(&self) -> impl Iterator<Item = &Conv2d> {
        [&self.conv1, &self.conv2].into_iter().chain(&self.conv3)
    }

    /// `[batch, channels, height, width]` in the dtype of `x`.
    pub fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let norm_act =
            |norm, x, residual, activation| norm_act(norm, x, residual, activation, self.outputs);
        let residual = match &self.downsample {
            Some(Downsample { conv, bn }) => {
                norm_act(bn, conv2d(conv, x.clone()), None, Activation::Identity)
            }
            None => x.clone(),
        };
        let y = conv2d(&self.conv1, x);
        let y = norm_act(&self.bn1, y, None, Activation::Relu);
        let y = conv2d(&self.conv2, y);
        let Some(conv3) = &self.conv3 else {
            return norm_act(&self.bn2, y, Some(residual), Activation::Relu);
        };
        let y = norm_act(&self.bn2, y, None, Activation::Relu);
        let y = conv2d(conv3, y);
        norm_act(&self.bn3, y, Some(residual), Activation::Relu)
    }
}

/// What a ResNet is a chain of.
#[derive(Module, Debug)]
// Handles, made for one forward; a box would only add an allocation.
#[allow(clippy::large_enum_variant)]
pub(super) enum Piece {
    /// All before the first block.
    Stem(Stem),
    /// A residual block.
    Block(Block),
}

impl Link for Piece {
    type Value = Tensor<4>;

    fn step(&self, x: Tensor<4>) -> Tensor<4> {
        match self {
            Self::Stem(stem) => stem.forward(x),
            Self::Block(block) => block.forward(x),
        }
    }
}

/// Convolution, norm and, for large images, a max-pool.
#[derive(Module, Debug)]
pub(super) struct Stem {
    pub conv1: Conv2d,
    pub tail: StemTail,
    #[module(skip)]
    pub outputs: Output,
}

/// What follows the stem's convolution.
#[derive(Module, Debug)]
pub(super) struct StemTail {
    pub bn1: Option<BatchNorm>,
    pub maxpool: Option<MaxPool2d>,
}

impl Stem {
    fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let x = conv2d(&self.conv1, images);
        match self.outputs {
            Output::Kept => self.tail.forward(x),
            // The pool would keep its input and where each maximum was.
            Output::Recomputed => {
                let recompute = Checkpoint {
                    preserve_rng: false,
                    drop_outputs: true,
                    ..Checkpoint::default()
                };
                recompute.run(&self.tail, x, StemTail::forward)
            }
        }
    }
}

impl StemTail {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let x = norm_act(&self.bn1, x, None, Activation::Relu, Output::Kept);
        match &self.maxpool {
            Some(maxpool) => maxpool.forward(x),
            None => x,
        }
    }
}
