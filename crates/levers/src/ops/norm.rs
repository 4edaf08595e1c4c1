//! BatchNorm, residual and ReLU as one operation that keeps one tensor.

use burn::backend::tensor::FloatTensor;
use burn::backend::{AutodiffBackend, Dispatch};
use burn::module::RunningState;
use burn::nn::BatchNorm;
use burn::tensor::{FloatDType, Tensor, activation};
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};

use super::LeanOps;
use super::kernels::{Activation, Kernels, NormActSaved};

/// `act(batch_norm(x) + residual)` for a Burn [`BatchNorm`] and `x` `[batch, channels, height, width]`.
///
/// Input, residual and output are in `x`'s dtype; statistics, parameters and the arithmetic between
/// are f32. In training the running statistics are updated as Burn does it: with the *biased* batch
/// variance (PyTorch uses n/(n-1)), on the micro-batch at hand.
pub fn norm_act(
    norm: &BatchNorm,
    x: Tensor<4>,
    residual: Option<Tensor<4>>,
    activation: Activation,
) -> Tensor<4> {
    if !(x.device().is_autodiff() && norm.training.is_enabled()) {
        return with_running_statistics(norm, x, residual, activation);
    }
    let x = x.into_dispatch();
    let [gamma, beta] = [&norm.gamma, &norm.beta].map(|param| param.val().into_dispatch());
    let (output, mean, variance) = match residual.map(Tensor::into_dispatch) {
        None => Dispatch::lean_norm_act(x, gamma, beta, norm.epsilon, activation),
        Some(residual) => {
            Dispatch::lean_norm_add_act(x, gamma, beta, residual, norm.epsilon, activation)
        }
    };
    let update = |state: &RunningState<Tensor<1>>, batch: Tensor<1>| {
        let old = state.value_sync();
        // An overflow in one forward must not stay in the statistics for good.
        let broken = batch.clone().is_finite().bool_not();
        let moved = old.clone().mul_scalar(1.0 - norm.momentum);
        let moved = moved.add(batch.mul_scalar(norm.momentum));
        state.update(moved.mask_where(broken, old).detach());
    };
    update(&norm.running_mean, Tensor::from_dispatch(mean));
    update(&norm.running_var, Tensor::from_dispatch(variance));
    Tensor::from_dispatch(output)
}

fn with_running_statistics(
    norm: &BatchNorm,
    x: Tensor<4>,
    residual: Option<Tensor<4>>,
    activation: Activation,
) -> Tensor<4> {
    let dtype = x.dtype();
    let mut y = burn::tensor::module::batch_norm(
        x.cast(FloatDType::F32),
        norm.gamma.val(),
        norm.beta.val(),
        norm.running_mean.value(),
        norm.running_var.value(),
        norm.epsilon,
    );
    if let Some(residual) = residual {
        y = y + residual.cast(FloatDType::F32);
    }
    if activation == Activation::Relu {
        y = activation::relu(y);
    }
    y.cast(dtype)
}

#[derive(Debug)]
struct NormActBackward;

impl NormActBackward {
    /// Parents are x, gamma, beta and, where there is one, the residual.
    fn run<B: Kernels, const N: usize>(ops: Ops<NormActSaved<B>, N>, grads: &mut Gradients) {
        let grad = grads.consume::<B>(&ops.node);
        let wants_residual = ops.parents.get(3).is_some_and(Option::is_some);
        let result = B::norm_act_backward(ops.state, grad, wants_residual);
        let for_parents = [
            Some(result.x),
            Some(result.gamma),
            Some(result.beta),
            result.residual,
        ];
        for (parent, grad) in ops.parents.into_iter().zip(for_parents) {
            if let (Some(parent), Some(grad)) = (parent, grad) {
                grads.register::<B>(parent.id, grad);
            }
        }
    }
}

macro_rules! norm_act_with_parents {
    ($count:literal) => {
        impl<B: Kernels> Backward<B, $count> for NormActBackward {
            type State = NormActSaved<B>;

            fn backward(
                self,
                ops: Ops<NormActSaved<B>, $count>,
                grads: &mut Gradients,
                _checkpointer: &mut Checkpointer,
            ) {
                Self::run(ops, grads);
            }
        }
    };
}

norm_act_with_parents!(3);
norm_act_with_parents!(4);

type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

pub(super) fn differentiable<B: Kernels, C: CheckpointStrategy>(
    x: Tracked<B, C>,
    gamma: Tracked<B, C>,
    beta: Tracked<B, C>,
    residual: Option<Tracked<B, C>>,
    epsilon: f64,
    activation: Activation,
) -> (Tracked<B, C>, Tracked<B, C>, Tracked<B, C>) {
    let residual_primitive = residual.as_ref().map(|r| r.primitive().clone());
    let (output, mean, variance) = B::norm_act_forward(
        x.primitive().clone(),
        gamma.primitive().clone(),
        beta.primitive().clone(),
        residual_primitive,
        epsilon,
        activation,
    );
    // Without a residual the sign of the output follows from x; with one it needs the output.
    let keep_output = residual.is_some() && activation == Activation::Relu;
    let saved = NormActSaved::<B> {
        x: x.primitive().clone(),
        gamma: gamma.primitive().clone(),
        beta: beta.primitive().clone(),
        mean: mean.clone(),
        variance: variance.clone(),
        output: keep_output.then(|| output.clone()),
        epsilon,
        activation,
    };
    let nodes = [x.node(), gamma.node(), beta.node()];
    let output = match residual {
        None => finish::<B, C, 3>(nodes, saved, output),
        Some(residual) => {
            let [x, gamma, beta] = nodes;
            finish::<B, C, 4>([x, gamma, beta, residual.node()], saved, output)
        }
    };
    let constant = <Autodiff<B, C> as AutodiffBackend>::from_inner;
    (output, constant(mean), constant(variance))
}

fn finish<B: Kernels, C: CheckpointStrategy, const N: usize>(
    nodes: [NodeGuard; N],
    saved: NormActSaved<B>,
    output: FloatTensor<B>,
) -> Tracked<B, C>
where
    NormActBackward: Backward<B, N, State = NormActSaved<B>>,
{
    match NormActBackward
        .prepare::<C>(nodes)
        .compute_bound()
        .stateful()
    {
        OpsKind::Tracked(prep) => prep.finish(saved, output),
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
