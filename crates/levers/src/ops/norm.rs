//! BatchNorm, residual and ReLU as one operation that keeps one tensor.

use burn::backend::tensor::FloatTensor;
use burn::backend::{AutodiffBackend, Dispatch, DispatchKindConversion, DispatchTensor};
use burn::module::RunningState;
use burn::nn::BatchNorm;
use burn::tensor::{FloatDType, Tensor, activation};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::retro_forward::RetroForward;
use burn_autodiff::checkpoint::state::BackwardStates;
use burn_autodiff::checkpoint::strategy::{BalancedCheckpointing, CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn_autodiff::{Autodiff, NodeId};

use super::identity::identity;
use super::kernels::{Activation, Kernels, NormAct};
use super::{LeanOps, dispatch, primitive, replay};

/// What becomes of an operation's output that another operation wants for its backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// It is kept.
    #[default]
    Kept,
    /// It is computed again from what this operation keeps, and shared by all who want it.
    Recomputed,
}

/// `act(batch_norm(x) + residual)` for a Burn [`BatchNorm`] and `x` `[batch, channels, height, width]`.
///
/// Input, residual and output are in `x`'s dtype; statistics, parameters and the arithmetic between
/// are f32. In training the running statistics are updated as Burn does it: with the *biased* batch
/// variance (PyTorch uses n/(n-1)), on the micro-batch at hand.
///
/// With [`Output::Recomputed`] a convolution or product behind it does not keep this output: the
/// backward normalises once more, with the statistics found here, and gets the same bits.
pub fn norm_act(
    norm: &BatchNorm,
    x: Tensor<4>,
    residual: Option<Tensor<4>>,
    activation: Activation,
    keep: Output,
) -> Tensor<4> {
    if !(x.device().is_autodiff() && norm.training.is_enabled()) {
        return with_running_statistics(norm, x, residual, activation);
    }
    let x = x.into_dispatch();
    let [gamma, beta] = [&norm.gamma, &norm.beta].map(|param| param.val().into_dispatch());
    let (output, mean, variance) = match residual.map(Tensor::into_dispatch) {
        None => Dispatch::lean_norm_act(x, gamma, beta, norm.epsilon, activation, keep),
        Some(residual) => {
            Dispatch::lean_norm_add_act(x, gamma, beta, residual, norm.epsilon, activation, keep)
        }
    };
    if replay::is_replaying() {
        return Tensor::from_dispatch(output);
    }
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

/// What the backward of `act(batch_norm(x) + residual)` needs.
#[derive(Clone, Debug)]
struct Saved<B: Kernels> {
    x: NodeId,
    norm: NormAct<B>,
    sign: Sign<B>,
}

/// Where the backward learns which values the activation stopped.
#[derive(Clone, Debug)]
enum Sign<B: Kernels> {
    /// They follow from `x`, or there is no activation.
    OfInput,
    /// With a residual they don't, so the output is kept.
    OfOutput(FloatTensor<B>),
    /// Or the gradient has passed a [`Gate`] before it came here.
    Passed,
}

#[derive(Debug)]
struct NormActBackward;

impl NormActBackward {
    /// Parents are x, gamma, beta and, where there is one, the residual.
    fn run<B: Kernels, const N: usize>(
        ops: Ops<Saved<B>, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<B>(&ops.node);
        let Saved { x, mut norm, sign } = ops.state;
        let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
        let output = match sign {
            Sign::OfInput => None,
            Sign::OfOutput(output) => Some(output),
            Sign::Passed => {
                norm.activation = Activation::Identity;
                None
            }
        };
        let wants_residual = ops.parents.get(3).is_some_and(Option::is_some);
        let result = B::norm_act_backward(x, norm, output, grad, wants_residual);
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
            type State = Saved<B>;

            fn backward(
                self,
                ops: Ops<Saved<B>, $count>,
                grads: &mut Gradients,
                checkpointer: &mut Checkpointer,
            ) {
                Self::run(ops, grads, checkpointer);
            }
        }
    };
}

norm_act_with_parents!(3);
norm_act_with_parents!(4);

/// Stands behind a norm with residual and ReLU: applies the ReLU's mask to the gradient, by the output
/// that the graph has recomputed anyway for those who read it.
#[derive(Debug)]
struct Gate;

impl<B: Kernels> Backward<B, 1> for Gate {
    type State = NodeId;

    fn backward(self, ops: Ops<NodeId, 1>, grads: &mut Gradients, checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let output = checkpointer.retrieve_node_output::<FloatTensor<B>>(ops.state);
        if let [Some(parent)] = ops.parents {
            grads.register::<B>(parent.id, B::relu_mask(output, grad));
        }
    }
}

/// An input of a recomputation: found through the graph, which counts those it knows, or by value.
#[derive(Clone, Debug)]
enum Operand<B: Kernels> {
    Node(NodeId),
    Value(FloatTensor<B>),
}

impl<B: Kernels> Operand<B> {
    fn of(tensor: &AutodiffTensor<B>) -> Self {
        match tensor.is_tracked() {
            true => Self::Node(tensor.id()),
            false => Self::Value(tensor.primitive().clone()),
        }
    }

    fn get(&self, states: &mut BackwardStates) -> FloatTensor<B> {
        match self {
            Self::Node(id) => states.get_state(id),
            Self::Value(tensor) => tensor.clone(),
        }
    }
}

#[derive(Debug)]
struct NormActAgain<B: Kernels> {
    x: Operand<B>,
    parameters: [Operand<B>; 2],
    residual: Option<Operand<B>>,
    norm: NormAct<B>,
}

impl<B: Kernels> RetroForward for NormActAgain<B> {
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        let x = self.x.get(states);
        let residual = self.residual.as_ref().map(|residual| residual.get(states));
        // Every parent must be asked for once, or the graph would hold it to the end.
        for parameter in &self.parameters {
            parameter.get(states);
        }
        let output = B::norm_act_again(x, &self.norm, residual);
        states.save(out_node, output);
    }
}

/// A tensor in the graph: the same type under every strategy.
type AutodiffTensor<B> = FloatTensor<Autodiff<B>>;

pub(super) fn differentiable<B: Kernels, C: CheckpointStrategy>(
    x: AutodiffTensor<B>,
    gamma: AutodiffTensor<B>,
    beta: AutodiffTensor<B>,
    residual: Option<AutodiffTensor<B>>,
    epsilon: f64,
    activation: Activation,
    keep: Output,
) -> (AutodiffTensor<B>, AutodiffTensor<B>, AutodiffTensor<B>)
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let residual_value = residual.as_ref().map(|r| r.primitive().clone());
    let [x_value, gamma_value, beta_value] = [&x, &gamma, &beta].map(|t| t.primitive().clone());
    let of_this_backend = |kept| primitive::<B>(kept).expect("left by this backend");
    let kept = replay::next().map(|kept| kept.map(of_this_backend));
    let (output, norm) = match kept {
        Some([mean, variance]) => {
            let norm = NormAct {
                gamma: gamma_value,
                beta: beta_value,
                mean,
                variance,
                epsilon,
                activation,
            };
            (B::norm_act_again(x_value, &norm, residual_value), norm)
        }
        None => B::norm_act_forward(
            x_value,
            gamma_value,
            beta_value,
            residual_value,
            epsilon,
            activation,
        ),
    };
    let statistics = [norm.mean.clone(), norm.variance.clone()];
    replay::keep(|| statistics.clone().map(dispatch::<B>));

    let nodes = [x.node(), gamma.node(), beta.node()];
    let call = Call {
        x,
        parameters: [gamma, beta],
        residual,
        norm,
        keep,
    };
    let output = match &call.residual {
        None => call.prepare::<C, 3>(nodes, output),
        Some(residual) => {
            let [x, gamma, beta] = nodes;
            call.prepare::<C, 4>([x, gamma, beta, residual.node()], output)
        }
    };
    let [mean, variance] = statistics.map(<Autodiff<B, C> as AutodiffBackend>::from_inner);
    (output, mean, variance)
}

/// An operation on its way into the graph.
struct Call<B: Kernels> {
    x: AutodiffTensor<B>,
    parameters: [AutodiffTensor<B>; 2],
    residual: Option<AutodiffTensor<B>>,
    norm: NormAct<B>,
    keep: Output,
}

impl<B: Kernels> Call<B> {
    /// Whether the sign of the output can only be known from the output, which nobody keeps.
    fn is_gated(&self) -> bool {
        let recomputed = self.keep == Output::Recomputed;
        recomputed && self.residual.is_some() && self.norm.activation == Activation::Relu
    }

    fn prepare<C: CheckpointStrategy, const N: usize>(
        &self,
        nodes: [NodeGuard; N],
        output: FloatTensor<B>,
    ) -> AutodiffTensor<B>
    where
        NormActBackward: Backward<B, N, State = Saved<B>>,
    {
        let [gamma, beta] = &self.parameters;
        let operands = [
            Some(&self.x),
            Some(gamma),
            Some(beta),
            self.residual.as_ref(),
        ];
        let mut tracked = operands
            .into_iter()
            .flatten()
            .filter(|x| x.is_tracked())
            .peekable();
        // A node without gradients must hold nothing: what would be recomputed is wanted by nobody.
        if self.keep == Output::Kept || tracked.peek().is_none() {
            let prepared = NormActBackward.prepare::<C>(nodes);
            return self.finish(prepared.compute_bound().stateful(), output);
        }
        // Burn's own strategy for one node: those who read it recompute it.
        let prepared = NormActBackward
            .prepare::<BalancedCheckpointing>(nodes)
            .memory_bound()
            .retro_forward(NormActAgain {
                x: Operand::of(&self.x),
                parameters: self.parameters.each_ref().map(Operand::of),
                residual: self.residual.as_ref().map(Operand::of),
                norm: self.norm.clone(),
            })
            .parents(tracked)
            .stateful();
        let output = self.finish(prepared, output);
        match self.is_gated() {
            true => identity::<B, _>(Gate, output, true, |input| input),
            false => output,
        }
    }

    fn finish<C: CheckpointStrategy, const N: usize>(
        &self,
        prepared: OpsKind<NormActBackward, B, Saved<B>, C, N>,
        output: FloatTensor<B>,
    ) -> AutodiffTensor<B>
    where
        NormActBackward: Backward<B, N, State = Saved<B>>,
    {
        match prepared {
            OpsKind::Tracked(mut prep) => {
                let sign = match (&self.residual, self.norm.activation) {
                    _ if self.is_gated() => Sign::Passed,
                    (None, _) | (_, Activation::Identity) => Sign::OfInput,
                    (Some(_), Activation::Relu) => Sign::OfOutput(output.clone()),
                };
                let saved = Saved {
                    x: prep.checkpoint(&self.x),
                    norm: self.norm.clone(),
                    sign,
                };
                prep.finish(saved, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}
