//! Operations with a derivative written by hand, in Burn's own tensor operations.
//!
//! A [`Rule`] sees plain tensors without a graph, on whatever backend, and says which of its inputs
//! the backward wants. One rule then works on flex, on the cubecl backends and on the capture device.

use std::fmt::Debug;
use std::sync::Arc;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, DispatchKindConversion, DispatchTensor};
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_autodiff::{Autodiff, NodeId};
use leanburn_memory::trace::{Kernel, as_one};

use super::{dispatch, primitive};

/// An output, and what the backward needs besides the inputs.
pub type Made = (DispatchTensor, Vec<DispatchTensor>);

/// Gradients for the inputs, in their order.
pub type InputGradients = Vec<Option<DispatchTensor>>;

/// A half of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// [`Rule::forward`]
    Forward,
    /// [`Rule::backward`]
    Backward,
}

/// A differentiable operation of one to three float inputs and one output.
pub trait Rule: Debug + Send + Sync {
    /// Which inputs the backward gets back; nothing of the others is kept.
    fn keeps(&self) -> &'static [bool];

    /// How a kernel of the CPU takes memory that computes all of [`Self::forward`] or [`Self::backward`] at
    /// once; `None` where the tensor operations run everywhere.
    fn kernel(&self, _inputs: &[DispatchTensor], _pass: Pass) -> Option<Kernel> {
        None
    }

    /// The output. `wanted` says which inputs want a gradient.
    fn forward(&self, inputs: Vec<DispatchTensor>, wanted: &[bool]) -> Made;

    /// The gradients, at least where `wanted`. `inputs` are those that [`Self::keeps`] names, `kept` is
    /// what [`Self::forward`] handed out.
    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        wanted: &[bool],
    ) -> InputGradients;
}

#[derive(Debug)]
pub(super) struct RuleBackward;

#[derive(Clone, Debug)]
pub(super) struct Saved {
    inputs: Vec<NodeId>,
    kept: Vec<DispatchTensor>,
    rule: Arc<dyn Rule>,
}

impl RuleBackward {
    fn run<B: Backend, const N: usize>(
        ops: Ops<Saved, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) where
        DispatchTensor: DispatchKindConversion<B>,
    {
        let gradient = dispatch::<B>(grads.consume::<B>(&ops.node));
        let Saved { inputs, kept, rule } = ops.state;
        let input = |id| dispatch::<B>(checkpointer.retrieve_node_output::<FloatTensor<B>>(id));
        let inputs: Vec<_> = inputs.into_iter().map(input).collect();
        let wanted = ops.parents.each_ref().map(Option::is_some);
        let gradients = {
            let _one = as_one(|| rule.kernel(&inputs, Pass::Backward));
            rule.backward(inputs, kept, gradient, &wanted)
        };
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                let gradient = primitive::<B>(gradient).expect("on the device of the inputs");
                grads.register::<B>(parent.id, gradient);
            }
        }
    }
}

macro_rules! rule_with_parents {
    ($($count:literal)*) => {
        $(impl<B: Backend> Backward<B, $count> for RuleBackward
        where
            DispatchTensor: DispatchKindConversion<B>,
        {
            type State = Saved;

            fn backward(
                self,
                ops: Ops<Saved, $count>,
                grads: &mut Gradients,
                checkpointer: &mut Checkpointer,
            ) {
                Self::run::<B, $count>(ops, grads, checkpointer);
            }
        })*
    };
}

rule_with_parents!(1 2 3);

fn forward(rule: &dyn Rule, inputs: Vec<DispatchTensor>, wanted: &[bool]) -> Made {
    let _one = as_one(|| rule.kernel(&inputs, Pass::Forward));
    rule.forward(inputs, wanted)
}

/// The operation without a graph.
pub(super) fn plain<B: Backend, const N: usize>(
    inputs: [FloatTensor<B>; N],
    rule: &dyn Rule,
) -> FloatTensor<B>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let inputs = inputs.into_iter().map(dispatch::<B>).collect();
    let (output, _) = forward(rule, inputs, &[false; N]);
    primitive::<B>(output).expect("on the device of the inputs")
}

/// The operation as a node of the graph.
pub(super) fn differentiable<B: Backend, C: CheckpointStrategy, const N: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    rule: Arc<dyn Rule>,
) -> FloatTensor<Autodiff<B, C>>
where
    DispatchTensor: DispatchKindConversion<B>,
    RuleBackward: Backward<B, N, State = Saved>,
{
    let wanted = inputs.each_ref().map(|input| input.is_tracked());
    let values = inputs
        .iter()
        .map(|input| dispatch::<B>(input.primitive().clone()));
    let (output, kept) = forward(rule.as_ref(), values.collect(), &wanted);
    let output = primitive::<B>(output).expect("on the device of the inputs");
    let nodes = inputs.each_ref().map(|input| input.node());
    match RuleBackward.prepare::<C>(nodes).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let wants = inputs.iter().zip(rule.keeps());
            let wants = wants.filter(|(_, keep)| **keep);
            let saved = Saved {
                inputs: wants.map(|(input, _)| prep.checkpoint(input)).collect(),
                kept,
                rule,
            };
            prep.finish(saved, output)
        }
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
