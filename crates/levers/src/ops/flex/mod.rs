//! CPU kernels: f32 arithmetic straight from and to half-precision storage, no copies the size of
//! an activation, and matrix products over all images of a batch at once.
//!
//! Burn-flex multiplies image by image and differentiates a convolution's weight by a convolution
//! with a kernel as large as the image; `benches/step.rs` measures what the difference is.

mod columns;
mod conv;
pub(crate) mod element;
pub(crate) mod exp;
pub(crate) mod layer_norm;
mod norm;
pub(crate) mod pointwise;
pub(crate) mod product;
pub(crate) mod rows;
mod squares;

use burn::backend::ops::{ConvOptions, ModuleOps};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::{DType, Shape};

use super::kernels::{Activation, ConvPass, Kernels, NormAct, NormActGrads, cast};
use columns::Geometry;
pub(crate) use element::by_dtype;

/// Bytes that a convolution needs besides its tensors; 0 where Burn's own kernels do it.
pub(super) fn workspace(
    pass: ConvPass,
    [(x, dtype), (weight, stored)]: [(Shape, DType); 2],
    options: &ConvOptions<2>,
) -> u64 {
    let Some(geometry) = Geometry::supported(&x, &weight, options) else {
        return 0;
    };
    let rounded = match dtype == DType::F32 && stored == DType::F32 {
        true => 0,
        false => weight.num_elements(),
    };
    let floats = match pass {
        ConvPass::Forward => rounded + conv::forward_floats(&geometry),
        ConvPass::InputGrad => rounded + conv::input_grad_floats(&geometry),
        ConvPass::WeightGrad => conv::weight_grad_floats(&geometry),
    };
    4 * floats as u64
}

impl Kernels for Flex {
    fn conv2d_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let dtype = x.dtype();
        match Geometry::supported(&x.shape(), &weight.shape(), &options) {
            Some(geometry) => by_dtype!(dtype, E => conv::forward::<E>(x, weight, &geometry)),
            None => Self::conv2d(x, cast::<Self>(weight, dtype), None, options),
        }
    }

    fn conv2d_input_grad(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let dtype = x.dtype();
        match Geometry::supported(&x.shape(), &weight.shape(), &options) {
            Some(geometry) => {
                // The input gradient needs the input's shape only, so its memory can go now.
                drop(x);
                by_dtype!(dtype, E => conv::input_grad::<E>(weight, grad, &geometry))
            }
            None => Self::conv2d_x_backward(x, cast::<Self>(weight, dtype), grad, options),
        }
    }

    fn conv2d_weight_grad(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let (dtype, stored) = (x.dtype(), weight.dtype());
        match Geometry::supported(&x.shape(), &weight.shape(), &options) {
            Some(geometry) => {
                let grad = by_dtype!(dtype, E => conv::weight_grad::<E>(x, grad, &geometry));
                cast::<Self>(grad, stored)
            }
            None => {
                let weight = cast::<Self>(weight, dtype);
                let grad = Self::conv2d_weight_backward(x, weight, grad, options);
                cast::<Self>(grad, stored)
            }
        }
    }

    fn norm_act_forward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: Option<FloatTensor<Self>>,
        epsilon: f64,
        activation: Activation,
    ) -> (FloatTensor<Self>, NormAct<Self>) {
        by_dtype!(x.dtype(), E => norm::forward::<E>(x, gamma, beta, residual, epsilon, activation))
    }

    fn norm_act_again(
        x: FloatTensor<Self>,
        norm: &NormAct<Self>,
        residual: Option<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        by_dtype!(x.dtype(), E => norm::apply::<E>(x, norm, residual))
    }

    fn norm_act_backward(
        x: FloatTensor<Self>,
        norm: NormAct<Self>,
        output: Option<FloatTensor<Self>>,
        grad: FloatTensor<Self>,
        residual: bool,
    ) -> NormActGrads<Self> {
        by_dtype!(x.dtype(), E => norm::backward::<E>(x, norm, output, grad, residual))
    }

    fn relu_mask(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        by_dtype!(grad.dtype(), E => norm::relu_mask::<E>(output, grad))
    }

    fn sum_of_squares(x: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        by_dtype!(x.dtype(), E => squares::sum_of_squares::<E>(x, factor))
    }
}
