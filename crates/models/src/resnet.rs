//! ResNet-18 to 152 in torchvision's v1.5 layout (the stride sits in the 3x3 convolution).
//!
//! He et al., "Deep Residual Learning for Image Recognition", 2015
//! (<https://arxiv.org/abs/1512.03385>); layout and names of `torchvision.models.resnet`.

mod block;
mod fold;
mod tiled;

use std::fmt;
use std::str::FromStr;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor};
use leanburn_levers::checkpoint::Chain;
use leanburn_levers::{CheckpointPolicy, Offload, Output, Policy, linear};
use serde::{Deserialize, Serialize};

use block::{Block, BlockConfig, Piece, Stem as StemPiece, StemTail};

pub use tiled::{Tile, TileError};

/// How many layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "u16", try_from = "u16")]
pub enum Depth {
    /// Basic blocks 2-2-2-2.
    R18,
    /// Basic blocks 3-4-6-3.
    R34,
    /// Bottlenecks 3-4-6-3.
    R50,
    /// Bottlenecks 3-4-23-3.
    R101,
    /// Bottlenecks 3-8-36-3.
    R152,
}

impl Depth {
    /// Every depth there is.
    pub const ALL: [Self; 5] = [Self::R18, Self::R34, Self::R50, Self::R101, Self::R152];

    fn blocks(self) -> [usize; 4] {
        match self {
            Self::R18 => [2, 2, 2, 2],
            Self::R34 | Self::R50 => [3, 4, 6, 3],
            Self::R101 => [3, 4, 23, 3],
            Self::R152 => [3, 8, 36, 3],
        }
    }

    fn is_bottleneck(self) -> bool {
        !matches!(self, Self::R18 | Self::R34)
    }
}

impl From<Depth> for u16 {
    fn from(depth: Depth) -> u16 {
        match depth {
            Depth::R18 => 18,
            Depth::R34 => 34,
            Depth::R50 => 50,
            Depth::R101 => 101,
            Depth::R152 => 152,
        }
    }
}

impl TryFrom<u16> for Depth {
    type Error = String;

    fn try_from(layers: u16) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|depth| u16::from(*depth) == layers)
            .ok_or_else(|| format!("there is no ResNet-{layers}: use 18, 34, 50, 101 or 152"))
    }
}

impl FromStr for Depth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let layers = text.strip_prefix("resnet").unwrap_or(text);
        let layers: u16 = layers
            .parse()
            .map_err(|_| format!("'{text}' is no ResNet depth"))?;
        layers.try_into()
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "resnet{}", u16::from(*self))
    }
}

/// What the network does first to an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// 7x7 convolution of stride 2 and a max-pool: an eighth of 224 pixels reaches the first block.
    #[default]
    Imagenet,
    /// 3x3 convolution of stride 1, no max-pool: for images of 32 pixels and less.
    Small,
}

/// Which ResNet to build.
#[derive(Clone, Debug, PartialEq)]
pub struct ResNetConfig {
    /// Number of layers.
    pub depth: Depth,
    /// Number of classes.
    pub classes: usize,
    /// First layers.
    pub stem: Stem,
    /// Channels of the first stage; 64 in every published ResNet.
    pub width: usize,
    /// Start every block as the identity (its last norm's gamma at 0), which trains better from
    /// scratch in few steps; Goyal et al. 2017 (<https://arxiv.org/abs/1706.02677>), section 5.1.
    pub zero_init_residual: bool,
}

impl ResNetConfig {
    /// torchvision's network of this depth.
    pub fn new(depth: Depth, classes: usize) -> Self {
        Self {
            depth,
            classes,
            stem: Stem::Imagenet,
            width: 64,
            zero_init_residual: false,
        }
    }

    /// With other first layers.
    pub fn with_stem(mut self, stem: Stem) -> Self {
        self.stem = stem;
        self
    }

    /// With another width.
    pub fn with_width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// With blocks that start as the identity, or not.
    pub fn with_zero_init_residual(mut self, zero: bool) -> Self {
        self.zero_init_residual = zero;
        self
    }

    /// Builds the network in f32, initialised as torchvision does it.
    pub fn init(&self, device: &Device) -> ResNet {
        let (kernel, stride) = match self.stem {
            Stem::Imagenet => (7, 2),
            Stem::Small => (3, 1),
        };
        let mut channels = self.width;
        let mut stage = |index: usize| {
            let blocks = BlockConfig {
                width: self.width << index,
                bottleneck: self.depth.is_bottleneck(),
                zero_init: self.zero_init_residual,
            };
            (0..self.depth.blocks()[index])
                .map(|block| {
                    let stride = if index > 0 && block == 0 { 2 } else { 1 };
                    let built = blocks.init(channels, stride, device);
                    channels = blocks.channels_out();
                    built
                })
                .collect::<Vec<_>>()
        };
        let (layer1, layer2, layer3, layer4) = (stage(0), stage(1), stage(2), stage(3));
        ResNet {
            conv1: conv([3, self.width], kernel, stride, device),
            bn1: Some(BatchNormConfig::new(self.width).init(device)),
            maxpool: (self.stem == Stem::Imagenet).then(|| {
                MaxPool2dConfig::new([3, 3])
                    .with_strides([2, 2])
                    .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                    .init()
            }),
            layer1,
            layer2,
            layer3,
            layer4,
            fc: LinearConfig::new(channels, self.classes).init(device),
            chain: Chain::default(),
        }
    }
}

/// A convolution without bias, padded to keep the size at stride 1; He initialisation over the fan-out.
fn conv(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Conv2d {
    let pad = kernel / 2;
    Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(false)
        .with_initializer(Initializer::KaimingNormal {
            gain: std::f64::consts::SQRT_2,
            fan_out_only: true,
        })
        .init(device)
}

/// A residual network; fields carry torchvision's names.
#[derive(Module, Debug)]
pub struct ResNet {
    /// First convolution.
    pub conv1: Conv2d,
    /// Its norm, unless that is folded into it, as all norms can be.
    pub bn1: Option<BatchNorm>,
    /// Only with the ImageNet stem.
    pub maxpool: Option<MaxPool2d>,
    /// First stage.
    pub layer1: Vec<Block>,
    /// Second stage.
    pub layer2: Vec<Block>,
    /// Third stage.
    pub layer3: Vec<Block>,
    /// Fourth stage.
    pub layer4: Vec<Block>,
    /// Classifier head; stays in f32.
    pub fc: Linear,
    /// Which parts the backward recomputes.
    #[module(skip)]
    chain: Chain,
}

impl ResNet {
    /// Logits `[batch, classes]` in f32 for images `[batch, 3, height, width]` in f32.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let features = self.features(images);
        linear(&self.fc, features)
    }

    /// Pooled features `[batch, channels]` in f32.
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let map = self.feature_map(images);
        map.mean_dim(3).mean_dim(2).flatten(1, 3)
    }

    /// Stem and blocks, as handles on the same parameters.
    fn pieces(&self) -> Vec<Piece> {
        let mut outputs = self
            .chain
            .cheap(1 + self.blocks().count())
            .into_iter()
            .map(|cheap| match cheap {
                true => Output::Recomputed,
                false => Output::Kept,
            });
        let mut outputs = || outputs.next().expect("one for each");
        let stem = Piece::Stem(StemPiece {
            conv1: self.conv1.clone(),
            tail: StemTail {
                bn1: self.bn1.clone(),
                maxpool: self.maxpool.clone(),
            },
            outputs: outputs(),
        });
        let blocks = self.blocks().cloned().map(|mut block| {
            block.outputs = outputs();
            Piece::Block(block)
        });
        std::iter::once(stem).chain(blocks).collect()
    }

    /// The first layers that the network was built with.
    fn stem(&self) -> Stem {
        match self.maxpool {
            Some(_) => Stem::Imagenet,
            None => Stem::Small,
        }
    }

    /// All residual blocks, first to last.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        [&self.layer1, &self.layer2, &self.layer3, &self.layer4]
            .into_iter()
            .flatten()
    }

    /// Computes by this policy from now on; the classifier head stays in f32.
    pub fn with_policy(self, policy: Policy) -> Self {
        policy.attach(self, &["fc"])
    }

    /// Recomputes by this policy in the backward from now on. The chain is the stem, and then the
    /// blocks.
    pub fn with_checkpoint(mut self, policy: CheckpointPolicy, offload: Offload) -> Self {
        self.chain = Chain {
            policy,
            offload,
            // No dropout anywhere.
            random: false,
        };
        self
    }

    /// What is recomputed, and where kept inputs wait.
    pub fn checkpointing(&self) -> &Chain {
        &self.chain
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.fc.weight.lazy_shape()[1]
    }
}
