//! Differentiable operations that keep less for the backward than Burn's own.
//!
//! | operation | keeps | Burn keeps |
//! |---|---|---|
//! | [`conv2d`] | its input, and a handle to the stored weight | input, and the half-precision copy of the weight |
//! | [`norm_act`] | its input (and its output when a residual is added) | BatchNorm's input, the ReLU's input and output |
//! | [`linear`] | its input, and a handle to the stored weight | input, and the half-precision copy of the weight |
//! | [`layer_norm`], [`rms_norm`] | its input, two f32 a row | up to five tensors of the input's size |
//! | [`gelu`], [`swiglu`] | its inputs | GELU: its input, SwiGLU: four tensors |
//! | [`norm_act`] with [`Output::Recomputed`] | its input; what reads its output does not keep that either | the same |
//!
//! [`LeanOps`] is the seam to Burn: one method per operation, dispatched over backends, with the
//! derivative written by hand in the `Autodiff` implementation. [`Kernels`] is what a backend may
//! do better than the portable composition of Burn's operations; flex does (`flex/`).

mod conv;
#[cfg(feature = "flex")]
pub(crate) mod flex;
mod identity;
mod kernels;
mod layer_norm;
mod linear;
mod norm;
mod pointwise;
mod probe;
mod replay;
mod rotary;
mod rule;
mod squares;

use std::sync::Arc;

#[cfg(feature = "cube")]
use burn::backend::Cube;
#[cfg(feature = "flex")]
use burn::backend::Flex;
use burn::backend::ops::ConvOptions;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Backend, BackendTensor, Capture, DispatchKindConversion, DispatchTensor, backend_extension,
};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::ops::{Backward, OpsKind};

pub use conv::conv2d;
pub use kernels::{Activation, Kernels};
pub use layer_norm::{layer_norm, rms_norm};
pub use linear::linear;
pub use norm::{Output, norm_act};
pub use pointwise::{Gelu, gelu, swiglu};
pub use probe::probe;
pub(crate) use probe::probe_dispatch;
pub(crate) use replay::Record;
pub use rotary::Rotary;
pub use rule::{InputGradients, Made, Pass, Rule};
pub use squares::sum_of_squares;

/// The operations as Burn's dispatch sees them.
#[backend_extension(Autodiff, Cube: cfg(feature = "cube"), Flex: cfg(feature = "flex"), Capture)]
pub trait LeanOps: Backend {
    /// 2-D convolution of `x` `[batch, in, height, width]` with `weight` `[out, in, kh, kw]`.
    ///
    /// The weight may be stored wider than `x`: it is cast inside, for the forward and again for
    /// the backward, and the half-precision copy does not outlive either.
    fn lean_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self>;

    /// `act(batch_norm(x))` with the statistics of the batch; returns the output in `x`'s dtype,
    /// and the f32 mean and biased variance per channel.
    fn lean_norm_act(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
        activation: Activation,
        output: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// `act(batch_norm(x) + residual)`, likewise.
    fn lean_norm_add_act(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        epsilon: f64,
        activation: Activation,
        output: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// The identity; see [`probe`].
    fn lean_probe(x: FloatTensor<Self>, index: usize) -> FloatTensor<Self>;

    /// See [`sum_of_squares`].
    fn lean_sum_of_squares(x: FloatTensor<Self>, factor: f32) -> FloatTensor<Self>;

    /// A [`Rule`] of one input.
    fn lean_rule_1(x: FloatTensor<Self>, rule: Arc<dyn Rule>) -> FloatTensor<Self>;

    /// A [`Rule`] of two inputs.
    fn lean_rule_2(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        rule: Arc<dyn Rule>,
    ) -> FloatTensor<Self>;

    /// A [`Rule`] of three inputs.
    fn lean_rule_3(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        rule: Arc<dyn Rule>,
    ) -> FloatTensor<Self>;
}

macro_rules! lean_ops_by_kernels {
    ($backend:ty) => {
        impl LeanOps for $backend {
            fn lean_conv2d(
                x: FloatTensor<Self>,
                weight: FloatTensor<Self>,
                options: ConvOptions<2>,
            ) -> FloatTensor<Self> {
                <Self as Kernels>::conv2d_forward(x, weight, options)
            }

            fn lean_norm_act(
                x: FloatTensor<Self>,
                gamma: FloatTensor<Self>,
                beta: FloatTensor<Self>,
                epsilon: f64,
                activation: Activation,
                _output: Output,
            ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
                let (output, norm) =
                    <Self as Kernels>::norm_act_forward(x, gamma, beta, None, epsilon, activation);
                (output, norm.mean, norm.variance)
            }

            fn lean_norm_add_act(
                x: FloatTensor<Self>,
                gamma: FloatTensor<Self>,
                beta: FloatTensor<Self>,
                residual: FloatTensor<Self>,
                epsilon: f64,
                activation: Activation,
                _output: Output,
            ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
                let residual = Some(residual);
                let (output, norm) = <Self as Kernels>::norm_act_forward(
                    x, gamma, beta, residual, epsilon, activation,
                );
                (output, norm.mean, norm.variance)
            }

            fn lean_probe(x: FloatTensor<Self>, _index: usize) -> FloatTensor<Self> {
                x
            }

            fn lean_sum_of_squares(x: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
                <Self as Kernels>::sum_of_squares(x, factor)
            }

            fn lean_rule_1(x: FloatTensor<Self>, rule: Arc<dyn Rule>) -> FloatTensor<Self> {
                rule::plain::<Self, 1>([x], rule.as_ref())
            }

            fn lean_rule_2(
                a: FloatTensor<Self>,
                b: FloatTensor<Self>,
                rule: Arc<dyn Rule>,
            ) -> FloatTensor<Self> {
                rule::plain::<Self, 2>([a, b], rule.as_ref())
            }

            fn lean_rule_3(
                a: FloatTensor<Self>,
                b: FloatTensor<Self>,
                c: FloatTensor<Self>,
                rule: Arc<dyn Rule>,
            ) -> FloatTensor<Self> {
                rule::plain::<Self, 3>([a, b, c], rule.as_ref())
            }
        }
    };
}

#[cfg(feature = "flex")]
lean_ops_by_kernels!(Flex);

#[cfg(feature = "cube")]
lean_ops_by_kernels!(Cube);
#[cfg(feature = "cube")]
impl Kernels for Cube {}

lean_ops_by_kernels!(Capture);
impl Kernels for Capture {}

impl<B: Kernels + LeanOps, C: CheckpointStrategy> LeanOps for Autodiff<B, C>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    fn lean_conv2d(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        options: ConvOptions<2>,
    ) -> FloatTensor<Self> {
        conv::differentiable::<B, C>(x, weight, options)
    }

    fn lean_norm_act(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        epsilon: f64,
        activation: Activation,
        output: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        norm::differentiable::<B, C>(x, gamma, beta, None, epsilon, activation, output)
    }

    fn lean_norm_add_act(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        epsilon: f64,
        activation: Activation,
        output: Output,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        norm::differentiable::<B, C>(x, gamma, beta, Some(residual), epsilon, activation, output)
    }

    fn lean_probe(x: FloatTensor<Self>, index: usize) -> FloatTensor<Self> {
        probe::differentiable::<B, C>(x, index)
    }

    fn lean_sum_of_squares(x: FloatTensor<Self>, factor: f32) -> FloatTensor<Self> {
        let sum = B::sum_of_squares(x.into_primitive(), factor);
        <Self as burn::backend::AutodiffBackend>::from_inner(sum)
    }

    fn lean_rule_1(x: FloatTensor<Self>, rule: Arc<dyn Rule>) -> FloatTensor<Self> {
        rule::differentiable::<B, C, 1>([x], rule)
    }

    fn lean_rule_2(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        rule: Arc<dyn Rule>,
    ) -> FloatTensor<Self> {
        rule::differentiable::<B, C, 2>([a, b], rule)
    }

    fn lean_rule_3(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        rule: Arc<dyn Rule>,
    ) -> FloatTensor<Self> {
        rule::differentiable::<B, C, 3>([a, b, c], rule)
    }
}

/// Puts a prepared operation into the graph, with its state where the backward will want one.
pub(crate) fn finish<O, B, C, S, const N: usize>(
    prepared: OpsKind<O, B, S, C, N>,
    state: S,
    output: FloatTensor<B>,
) -> FloatTensor<Autodiff<B, C>>
where
    O: Backward<B, N, State = S>,
    B: Backend,
    C: CheckpointStrategy,
    S: Clone + Send + std::fmt::Debug + 'static,
{
    match prepared {
        OpsKind::Tracked(prep) => prep.finish(state, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}

/// The float primitive, if the tensor is one of backend `B`.
pub(crate) fn primitive<B: Backend>(tensor: DispatchTensor) -> Option<FloatTensor<B>>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    match DispatchTensor::try_into_backend(tensor) {
        Ok(BackendTensor::Float(tensor)) => Some(tensor),
        _ => None,
    }
}

/// The other way.
pub(crate) fn dispatch<B: Backend>(tensor: FloatTensor<B>) -> DispatchTensor
where
    DispatchTensor: DispatchKindConversion<B>,
{
    DispatchTensor::from_backend(BackendTensor::<B>::Float(tensor))
}
