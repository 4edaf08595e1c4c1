//! Nodes whose output is their input, and which nothing is kept for.

use std::fmt::Debug;
use std::marker::PhantomData;

use burn::backend::Backend;
use burn::backend::tensor::FloatTensor;
use burn_autodiff::checkpoint::retro_forward::RetroForward;
use burn_autodiff::checkpoint::state::BackwardStates;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_autodiff::ops::{Backward, OpsKind};
use burn_autodiff::{Autodiff, NodeId};

/// `x`, with `op` on the gradient's way. A child that wants this output for its backward is sent on
/// to the operation behind, which may recompute it.
///
/// `state` makes the operation's state; it may ask for the input to be there in the backward.
pub(super) fn identity<B: Backend, O>(
    op: O,
    x: FloatTensor<Autodiff<B>>,
    wants_input: bool,
    state: impl FnOnce(NodeId) -> O::State,
) -> FloatTensor<Autodiff<B>>
where
    O: Backward<B, 1>,
{
    // Burn's own strategy for one node: those who read it recompute it.
    let prepared = op.prepare::<BalancedCheckpointing>([x.node()]);
    let again = Same::<B> {
        parent: x.id(),
        backend: PhantomData,
    };
    let prepared = prepared.memory_bound().retro_forward(again).parents([&x]);
    match prepared.stateful() {
        OpsKind::Tracked(mut prep) => {
            if wants_input {
                prep.checkpoint(&x);
            }
            prep.finish(state(x.id()), x.into_primitive())
        }
        OpsKind::UnTracked(prep) => prep.finish(x.into_primitive()),
    }
}

#[derive(Debug)]
struct Same<B> {
    parent: NodeId,
    backend: PhantomData<B>,
}

impl<B: Backend> RetroForward for Same<B> {
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        let output = states.get_state::<FloatTensor<B>>(&self.parent);
        states.save(out_node, output);
    }
}
