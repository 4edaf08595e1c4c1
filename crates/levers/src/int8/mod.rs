//! Layers on 8-bit integers, for inference: weights stored as int8 with a scale per output channel, inputs
//! rounded to uint8 with a scale and a zero point per tensor.
//!
//! [`Int8`] attaches to a parameter of any Burn module by reparameterization: `param.base()` is Burn's own
//! packed tensor of integers, `param.val()` the real numbers that they stand for. [`conv2d`](crate::conv2d),
//! [`linear`](crate::linear) and [`embedding`](crate::embedding) know it, and do without the real copy where
//! they can; any other code computes with `val()`. [`Watched`] is how calibration sees the inputs of the
//! former two. `leanburn-compress` makes both.

mod affine;
#[cfg(feature = "flex")]
mod kernel;
mod layers;
#[cfg(feature = "flex")]
mod on_flex;
pub mod store;
mod watch;

use burn::module::{Module, Param, Reparameterization};
use burn::tensor::Tensor;

pub use affine::Affine;
pub use layers::{Arithmetic, embedding};
pub(crate) use layers::{conv2d, linear};
pub use watch::{Watch, Watched};

/// The largest integer of a weight; -128 is never used, so that negation stays exact.
pub const LARGEST: i8 = 127;

/// What turns the stored integers of a weight into real numbers, and what its layer's inputs are rounded to.
#[derive(Module, Debug)]
pub struct Int8 {
    /// What one step of the integers is worth, `[channels]`.
    pub scale: Param<Tensor<1>>,
    /// Which axis of the weight the channels are: 0 of a convolution `[out, in, kh, kw]` and an embedding
    /// `[rows, width]`, 1 of Burn's linear layer `[in, out]`.
    #[module(skip)]
    pub axis: usize,
    /// How the layer's input is rounded; `None` leaves it as it is.
    #[module(skip)]
    pub input: Option<Affine>,
}

impl Int8 {
    /// The scales, shaped so that they spread over a weight of rank `D`.
    fn spread<const D: usize>(&self) -> Tensor<D> {
        let scale = self.scale.val();
        let mut shape = [1; D];
        shape[self.axis] = scale.dims()[0];
        scale.reshape(shape)
    }

    /// `x` as its rounding leaves it.
    fn rounded<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        match self.input {
            Some(input) => input.round(x),
            None => x,
        }
    }
}

impl Reparameterization for Int8 {
    const NAME: &'static str = "int8";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        base.dequantize() * self.spread()
    }
}
