//! A network without norms, for inference: each is folded into the convolution in front of it.

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Tensor, activation};
use leanburn_levers::{Activation, Output};

use super::{Block, ResNet};

impl ResNet {
    /// Replaces each convolution and its norm by what `fold` makes of them, which the first error ends.
    /// `leanburn_compress::fold` is meant; a norm that is folded already is left out.
    pub fn fold_norms<E>(
        mut self,
        mut fold: impl FnMut(Conv2d, &BatchNorm) -> Result<Conv2d, E>,
    ) -> Result<Self, E> {
        let mut pair = |conv: &mut Conv2d, norm: &mut Option<BatchNorm>| {
            if let Some(norm) = norm.take() {
                *conv = fold(conv.clone(), &norm)?;
            }
            Ok(())
        };
        pair(&mut self.conv1, &mut self.bn1)?;
        let stages = [
            &mut self.layer1,
            &mut self.layer2,
            &mut self.layer3,
            &mut self.layer4,
        ];
        for block in stages.into_iter().flatten() {
            let Block {
                conv1,
                bn1,
                conv2,
                bn2,
                conv3,
                bn3,
                downsample,
                ..
            } = block;
            pair(conv1, bn1)?;
            pair(conv2, bn2)?;
            if let Some(conv3) = conv3 {
                pair(conv3, bn3)?;
            }
            if let Some(downsample) = downsample {
                pair(&mut downsample.conv, &mut downsample.bn)?;
            }
        }
        Ok(self)
    }
}

/// `act(norm(x) + residual)`, where the norm may be folded away.
pub(super) fn norm_act(
    norm: &Option<BatchNorm>,
    x: Tensor<4>,
    residual: Option<Tensor<4>>,
    activation: Activation,
    keep: Output,
) -> Tensor<4> {
    if let Some(norm) = norm {
        return leanburn_levers::norm_act(norm, x, residual, activation, keep);
    }
    let y = match residual {
        Some(residual) => x + residual,
        None => x,
    };
    match activation {
        Activation::Relu => activation::relu(y),
        Activation::Identity => y,
    }
}
