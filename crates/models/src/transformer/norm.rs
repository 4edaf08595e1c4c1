//! The norm between the layers of a Transformer.

use burn::module::{Initializer, Module, Param};
use burn::tensor::{Device, Tensor};
use leanburn_levers::{layer_norm, rms_norm};

/// LayerNorm with `beta`, RMSNorm without. Parameters and arithmetic are f32, whatever the input is in.
#[derive(Module, Debug)]
pub struct Norm {
    /// Scale, `[width]`.
    pub gamma: Param<Tensor<1>>,
    /// Shift, `[width]`.
    pub beta: Option<Param<Tensor<1>>>,
    #[module(skip)]
    epsilon: f64,
}

impl Norm {
    /// A LayerNorm.
    pub fn layer(width: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            beta: Some(Initializer::Zeros.init([width], device)),
            ..Self::rms(width, epsilon, device)
        }
    }

    /// An RMSNorm.
    pub fn rms(width: usize, epsilon: f64, device: &Device) -> Self {
        Self {
            gamma: Initializer::Ones.init([width], device),
            beta: None,
            epsilon,
        }
    }

    /// Over the last dimension of `x`.
    pub fn forward<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match &self.beta {
            Some(beta) => layer_norm(x, self.gamma.val(), beta.val(), self.epsilon),
            None => rms_norm(x, self.gamma.val(), self.epsilon),
        }
    }
}
