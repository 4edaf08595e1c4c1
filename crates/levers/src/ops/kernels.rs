//! What one backend computes for the lean operations; the defaults compose Burn's own.

use burn::backend::ops::ConvOptions;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::{DType, FloatDType};
use leanburn_memory::trace::{Kernel, as_one};

#[cfg(feature = "flex")]
use super::flex;

/// The activation fused behind a normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Leave the value as it is.
    Identity,
    /// `max(0, v)`.
    #[default]
    Relu,
}

/// The affine map of a normalisation by given statistics, and what follows it.
#[derive(Clone, Debug)]
pub struct NormAct<B: Backend> {
    /// Scale, `[channels]`, f32.
    pub gamma: FloatTensor<B>,
    /// Shift, `[channels]`, f32.
    pub beta: FloatTensor<B>,
    /// Batch mean, `[channels]`, f32.
    pub mean: FloatTensor<B>,
    /// Biased batch variance, `[channels]`, f32.
    pub variance: FloatTensor<B>,
    /// Added to the variance.
    pub epsilon: f64,
    /// Which activation follows.
    pub activation: Activation,
}

impl<B: Backend> NormAct<B> {
    /// What follows the normalisation, in f32.
    fn follow(&self, normed: FloatTensor<B>, residual: Option<FloatTensor<B>>) -> FloatTensor<B> {
        let sum = match residual {
            Some(residual) => B::float_add(normed, cast::<B>(residual, DType::F32)),
            None => normed,
        };
        match self.activation {
            Activation::Identity => sum,
            Activation::Relu => B::relu(sum),
        }
    }
}

/// Gradients of the normalisation with its activation.
pub struct NormActGrads<B: Backend> {
    /// For the input, in its dtype.
    pub x: FloatTensor<B>,
    /// For gamma, f32.
    pub gamma: FloatTensor<B>,
    /// For beta, f32.
    pub beta: FloatTensor<B>,
    /// For the residual: the incoming gradient behind the activation's mask.
    pub residual: Option<FloatTensor<B>>,
}

/// Casts, where needed.
pub fn cast<B: Backend>(tensor: FloatTensor<B>, dtype: DType) -> FloatTensor<B> {
    if tensor.dtype() == dtype {
        tensor
    } else {
        B::float_cast(tensor, FloatDType::from(dtype))
    }
}

/// The part of a convolution that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConvPass {
    Forward,
    InputGrad,
    WeightGrad,
}

/// An element-wise kernel, for a trace.
const IN_PLACE: Kernel = Kernel {
    name: "norm",
    workspace: 0,
    in_place: true,
    consumes: false,
};

/// The CPU's convolution, for a trace.
#[cfg_attr(not(feature = "flex"), allow(unused_variables))]
fn convolution<B: Backend>(
    pass: ConvPass,
    x: &FloatTensor<B>,
    weight: &FloatTensor<B>,
    options: &ConvOptions<2>,
) -> Option<Kernel> {
    #[cfg(feature = "flex")]
    let workspace = flex::workspace(pass, [x, weight].map(|t| (t.shape(), t.dtype())), options);
    #[cfg(not(feature = "flex"))]
    let workspace = 0;
    Some(Kernel {
        name: "convolution",
        workspace,
        in_place: false,
        // The input gradient needs the input's shape only.
        consumes: pass == ConvPass::InputGrad,
    })
}

/// The kernels behind [`LeanOps`](super::LeanOps).
pub trait Kernels: Backend {
    /// Convolution in `x`'s dtype, whatever the weight is stored in.
    fn conv2d_forward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let _one = as_one(|| convolution::<Self>(ConvPass::Forward, &x, &weight, &options));
        let weight = cast::<Self>(weight, x.dtype());
        Self::conv2d(x, weight, None, options)
    }

    /// Gradient for the convolution's input, in the input's dtype.
    fn conv2d_input_grad(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let _one = as_one(|| convolution::<Self>(ConvPass::InputGrad, &x, &weight, &options));
        let weight = cast::<Self>(weight, x.dtype());
        Self::conv2d_x_backward(x, weight, grad, options)
    }

    /// Gradient for the convolution's weight, in the dtype that the weight is stored in.
    fn conv2d_weight_grad(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        let _one = as_one(|| convolution::<Self>(ConvPass::WeightGrad, &x, &weight, &options));
        let stored = weight.dtype();
        let weight = cast::<Self>(weight, x.dtype());
        cast::<Self>(
            Self::conv2d_weight_backward(x, weight, grad, options),
            stored,
        )
    }

    /// Output in `x`'s dtype, and the norm as found. Everything between is f32.
    fn norm_act_forward(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: Option<FloatTensor<Self>>,
        epsilon: f64,
        activation: Activation,
    ) -> (FloatTensor<Self>, NormAct<Self>) {
        let _one = as_one(|| Some(Kernel::new("norm")));
        let dtype = x.dtype();
        let x = cast::<Self>(x, DType::F32);
        let normed = Self::batch_norm_train(x, gamma.clone(), beta.clone(), epsilon);
        let norm = NormAct {
            gamma,
            beta,
            mean: normed.mean,
            variance: normed.variance,
            epsilon,
            activation,
        };
        let y = norm.follow(normed.output, residual);
        (cast::<Self>(y, dtype), norm)
    }

    /// The output of [`Self::norm_act_forward`] again, from the statistics it found.
    fn norm_act_again(
        x: FloatTensor<Self>,
        norm: &NormAct<Self>,
        residual: Option<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        let _one = as_one(|| Some(Kernel::new("norm")));
        let dtype = x.dtype();
        let normed = Self::batch_norm(
            cast::<Self>(x, DType::F32),
            norm.gamma.clone(),
            norm.beta.clone(),
            norm.mean.clone(),
            norm.variance.clone(),
            norm.epsilon,
        );
        cast::<Self>(norm.follow(normed, residual), dtype)
    }

    /// Burn's batch-norm backward on the widened input, behind the activation's mask.
    ///
    /// `output` is there where a residual was added: without one the sign follows from `x`.
    fn norm_act_backward(
        x: FloatTensor<Self>,
        norm: NormAct<Self>,
        output: Option<FloatTensor<Self>>,
        grad: FloatTensor<Self>,
        residual: bool,
    ) -> NormActGrads<Self> {
        let _one = as_one(|| Some(IN_PLACE));
        let dtype = x.dtype();
        let mut grad = cast::<Self>(grad, DType::F32);
        if norm.activation == Activation::Relu {
            let output = match output {
                Some(output) => output,
                None => Self::norm_act_again(x.clone(), &norm, None),
            };
            grad = Self::relu_backward(cast::<Self>(output, DType::F32), grad);
        }
        let residual = residual.then(|| cast::<Self>(grad.clone(), dtype));
        let grads = Self::batch_norm_train_backward(
            cast::<Self>(x, DType::F32),
            norm.gamma,
            norm.mean,
            norm.variance,
            norm.epsilon,
            grad,
        );
        NormActGrads {
            x: cast::<Self>(grads.x_grad, dtype),
            gamma: grads.gamma_grad,
            beta: grads.beta_grad,
            residual,
        }
    }

    /// Zeroes the gradients of values that a ReLU with this `output` stopped.
    fn relu_mask(output: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let _one = as_one(|| Some(IN_PLACE));
        Self::relu_backward(output, grad)
    }

    /// `sum((x * factor)^2)` as `[1]`, f32.
    fn sum_of_squares(x: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        let _one = as_one(|| Some(Kernel::new("norm")));
        let scaled = Self::float_mul_scalar(cast::<Self>(x, DType::F32), factor.into());
        Self::float_sum(Self::float_mul(scaled.clone(), scaled))
    }
}
