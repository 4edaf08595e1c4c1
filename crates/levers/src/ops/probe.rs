//! An identity that notes what is alive when the forward, and later the backward, passes it.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, DispatchAutodiffContext, DispatchTensor, TensorMetadata};
use burn::tensor::Tensor;
use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};
use leanburn_memory::{Bytes, Mark, record};

use super::LeanOps;
use super::identity::identity;

/// Marks the place between two blocks as number `index` for the memory trace.
///
/// Does nothing, and adds nothing to the graph, unless a step is being recorded.
pub fn probe<const D: usize>(x: Tensor<D>, index: usize) -> Tensor<D> {
    Tensor::from_dispatch(probe_dispatch(x.into_dispatch(), index))
}

pub(crate) fn probe_dispatch(x: DispatchTensor, index: usize) -> DispatchTensor {
    if !record::is_recording() || x.autodiff == DispatchAutodiffContext::Disabled {
        return x;
    }
    record::mark(Mark::Forward(index), Bytes(0));
    Dispatch::lean_probe(x, index)
}

#[derive(Debug)]
struct ProbeBackward;

impl<B: Backend> Backward<B, 1> for ProbeBackward {
    type State = usize;

    fn backward(self, ops: Ops<usize, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let bytes = grad.shape().num_elements() * grad.dtype().size();
        record::mark(Mark::Backward(ops.state), Bytes(bytes as u64));
        if let [Some(parent)] = ops.parents {
            grads.register::<B>(parent.id, grad);
        }
    }
}

pub(super) fn differentiable<B: LeanOps, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    index: usize,
) -> FloatTensor<Autodiff<B, C>> {
    identity::<B, _>(ProbeBackward, x, false, |_| index)
}
