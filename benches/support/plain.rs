//! ResNet-50 as anyone would write it in Burn: what leanburn is measured against.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{MaxPool2d, MaxPool2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Tensor, activation::relu};

fn conv(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Conv2d {
    let pad = kernel / 2;
    Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(false)
        .init(device)
}

#[derive(Module, Debug)]
struct Bottleneck {
    conv1: Conv2d,
    bn1: BatchNorm,
    conv2: Conv2d,
    bn2: BatchNorm,
    conv3: Conv2d,
    bn3: BatchNorm,
    downsample_conv: Option<Conv2d>,
    downsample_bn: Option<BatchNorm>,
}

impl Bottleneck {
    fn new(channels: usize, width: usize, stride: usize, device: &Device) -> Self {
        let out = width * 4;
        let norm = |channels| BatchNormConfig::new(channels).init(device);
        let downsample = channels != out || stride != 1;
        Self {
            conv1: conv([channels, width], 1, 1, device),
            bn1: norm(width),
            conv2: conv([width, width], 3, stride, device),
            bn2: norm(width),
            conv3: conv([width, out], 1, 1, device),
            bn3: norm(out),
            downsample_conv: downsample.then(|| conv([channels, out], 1, stride, device)),
            downsample_bn: downsample.then(|| norm(out)),
        }
    }

    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let identity = match (&self.downsample_conv, &self.downsample_bn) {
            (Some(conv), Some(bn)) => bn.forward(conv.forward(x.clone())),
            _ => x.clone(),
        };
        let y = relu(self.bn1.forward(self.conv1.forward(x)));
        let y = relu(self.bn2.forward(self.conv2.forward(y)));
        relu(self.bn3.forward(self.conv3.forward(y)) + identity)
    }
}

/// ResNet-50 with the ImageNet stem.
#[derive(Module, Debug)]
pub struct ResNet50 {
    conv1: Conv2d,
    bn1: BatchNorm,
    maxpool: MaxPool2d,
    blocks: Vec<Bottleneck>,
    fc: Linear,
}

impl ResNet50 {
    pub fn new(classes: usize, device: &Device) -> Self {
        let mut channels = 64;
        let mut blocks = Vec::new();
        for (width, count, stride) in [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)] {
            for index in 0..count {
                let stride = if index == 0 { stride } else { 1 };
                blocks.push(Bottleneck::new(channels, width, stride, device));
                channels = width * 4;
            }
        }
        Self {
            conv1: conv([3, 64], 7, 2, device),
            bn1: BatchNormConfig::new(64).init(device),
            maxpool: MaxPool2dConfig::new([3, 3])
                .with_strides([2, 2])
                .with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1))
                .init(),
            blocks,
            fc: LinearConfig::new(channels, classes).init(device),
        }
    }

    /// Logits `[batch, classes]` for images `[batch, 3, height, width]`.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let x = relu(self.bn1.forward(self.conv1.forward(images)));
        let mut x = self.maxpool.forward(x);
        for block in &self.blocks {
            x = block.forward(x);
        }
        self.fc.forward(x.mean_dim(3).mean_dim(2).flatten(1, 3))
    }
}
