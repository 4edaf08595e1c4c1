//! The differentiable operation: three kinds of nodes in Burn's autodiff graph.
//!
//! ```text
//! inputs -> Tie -> Tie -> Hub -> Output 0, Output 1, ...
//! ```
//!
//! A node of Burn's graph has a fixed number of parents and one output. So the inputs are tied into
//! one, and every output hangs on the hub. In the backward each output leaves its gradient
//! with the hub; the hub, which runs after them all, runs the block again in a graph of its own,
//! differentiates that, and registers what arrives for inputs and parameters.
//!
//! The inner graph shares no node with the outer one: Burn holds the outer graph's lock meanwhile.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

#[cfg(feature = "cube")]
use burn::backend::Cube;
#[cfg(feature = "flex")]
use burn::backend::Flex;
use burn::backend::distributed::get_distributed_sync_client;
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    AutodiffBackend, Backend, Capture, DispatchKindConversion, DispatchTensor, TensorMetadata,
    backend_extension,
};
use burn::tensor::{FloatDType, Shape};
use burn_autodiff::checkpoint::base::Checkpointer;
use burn_autodiff::checkpoint::retro_forward::RetroForward;
use burn_autodiff::checkpoint::state::BackwardStates;
use burn_autodiff::checkpoint::strategy::{BalancedCheckpointing, CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops};
use burn_autodiff::{Autodiff, NodeId};

use super::parking::{Kept, lock};
use crate::ops::{dispatch, finish, primitive};

/// Runs the block again on the given inputs; with fresh parameter leaves if `tracked`.
pub(super) type Rerun = Arc<dyn Fn(Vec<DispatchTensor>, bool) -> Again + Send + Sync>;

/// What a block gave when it ran again.
pub(super) struct Again {
    pub outputs: Vec<DispatchTensor>,
    /// In the order of [`Call::leaves`].
    pub leaves: Vec<DispatchTensor>,
}

/// A block that has run its forward without a graph.
pub(crate) struct Call {
    pub(super) inputs: Vec<DispatchTensor>,
    /// Trainable parameters.
    pub(super) leaves: Vec<DispatchTensor>,
    pub(super) outputs: Vec<DispatchTensor>,
    pub(super) rerun: Rerun,
    /// Keep the inputs on the host.
    pub(super) park: bool,
    /// Let operations that read an output recompute it instead of keeping it.
    pub(super) drop_outputs: bool,
}

/// The operation as Burn's dispatch sees it.
#[backend_extension(Autodiff, Cube: cfg(feature = "cube"), Flex: cfg(feature = "flex"), Capture)]
pub(crate) trait CheckpointOps: Backend {
    /// Whether its memory is another than the host's, so that parking there gains something.
    const PARKS: bool = false;

    /// The call's outputs, as nodes of the graph. `anchor` is any tracked tensor of the call.
    fn checkpoint_call(anchor: FloatTensor<Self>, call: Call) -> Vec<FloatTensor<Self>>;
}

macro_rules! without_autodiff {
    ($backend:ty, $parks:literal) => {
        impl CheckpointOps for $backend {
            const PARKS: bool = $parks;

            fn checkpoint_call(_anchor: FloatTensor<Self>, call: Call) -> Vec<FloatTensor<Self>> {
                let outputs = call.outputs.into_iter();
                outputs
                    .map(|output| primitive::<Self>(output).expect("on this backend"))
                    .collect()
            }
        }
    };
}

#[cfg(feature = "flex")]
without_autodiff!(Flex, false);
#[cfg(feature = "cube")]
without_autodiff!(Cube, true);
// Whoever traces for a CPU asks for no parking.
without_autodiff!(Capture, true);

/// A tensor in the graph of `Autodiff<B, C>`, whatever the strategy.
type Tracked<B, C> = FloatTensor<Autodiff<B, C>>;

fn constant<B: Backend, C: CheckpointStrategy>(tensor: FloatTensor<B>) -> Tracked<B, C> {
    <Autodiff<B, C> as AutodiffBackend>::from_inner(tensor)
}

fn scalar<B: Backend>(like: &FloatTensor<B>) -> FloatTensor<B> {
    B::float_zeros(Shape::new([1]), &like.device(), FloatDType::F32)
}

impl<B, C> CheckpointOps for Autodiff<B, C>
where
    B: CheckpointOps,
    C: CheckpointStrategy,
    DispatchTensor: DispatchKindConversion<B> + DispatchKindConversion<Self>,
{
    fn checkpoint_call(anchor: FloatTensor<Self>, call: Call) -> Vec<FloatTensor<Self>> {
        assert!(
            get_distributed_sync_client::<B>().is_none(),
            "checkpoint: gradients inside a block cannot be all-reduced while a DistributedContext \
             is active; train with ExecutionStrategy::multi, or without checkpointing"
        );
        let zero = scalar::<B>(anchor.primitive());
        let mut tied = constant::<B, C>(zero.clone());
        let park = call.park && B::PARKS;
        let inputs = call.inputs.into_iter().map(|input| {
            let Some(tensor) = primitive::<Self>(input.clone()) else {
                return Input::Constant(input);
            };
            drop(input);
            let target = Target::of::<B, C>(&tensor);
            if target.is_some() {
                tied = tie::<B, C>(tied.clone(), &tensor, None, zero.clone());
            }
            let value = dispatch::<B>(tensor.into_primitive());
            Input::Variable(Kept::new(value, park), target)
        });
        let inputs = inputs.collect();
        if !tied.is_tracked() {
            // Only parameters want gradients: one of them makes the hub a part of the graph.
            tied = tie::<B, C>(tied, &anchor, None, zero.clone());
        }
        let leaves = call.leaves.into_iter().filter_map(primitive::<Self>);
        let received = Arc::new(Mutex::new(vec![None; call.outputs.len()]));
        let state = State {
            inputs,
            leaves: leaves.map(|leaf| leaf.id()).collect(),
            received: received.clone(),
            rerun: call.rerun,
        };
        let again = call.drop_outputs.then(|| state.clone());
        let hub = Hub(PhantomData::<C>)
            .prepare::<C>([tied.node()])
            .compute_bound()
            .stateful();
        let hub = finish(hub, state, zero);
        let outputs = call.outputs.into_iter().enumerate();
        let outputs = outputs.map(|(index, output)| {
            let value = match primitive::<Self>(output.clone()) {
                Some(output) => output.into_primitive(),
                // A block may hand on what it was given, such as a constant without autodiff.
                None => primitive::<B>(output).expect("on the device of the inputs"),
            };
            let leave = Leave {
                index,
                received: received.clone(),
            };
            match &again {
                None => {
                    let prepared = Output.prepare::<C>([hub.node()]).compute_bound().stateful();
                    finish(prepared, leave, value)
                }
                Some(state) => {
                    let again = OutputAgain {
                        hub: hub.id(),
                        index,
                        state: state.clone(),
                        backend: PhantomData::<(B, C)>,
                    };
                    // Burn's own strategy for one node: those who read it recompute it.
                    let prepared = Output
                        .prepare::<BalancedCheckpointing>([hub.node()])
                        .memory_bound()
                        .retro_forward(again)
                        .parents([&hub])
                        .stateful();
                    finish(prepared, leave, value)
                }
            }
        });
        outputs.collect()
    }
}

/// Where the gradient of an input goes.
#[derive(Clone, Copy, Debug)]
struct Target {
    node: NodeId,
    leaf: bool,
}

impl Target {
    fn of<B: Backend, C: CheckpointStrategy>(tensor: &Tracked<B, C>) -> Option<Self> {
        tensor.is_tracked().then(|| Self {
            node: tensor.id(),
            leaf: Autodiff::<B, C>::float_is_require_grad(tensor),
        })
    }
}

#[derive(Clone, Debug)]
enum Input {
    /// Without autodiff, as it was given.
    Constant(DispatchTensor),
    Variable(Kept, Option<Target>),
}

impl Input {
    /// The value for a run without a graph; it stays.
    fn value<B: Backend, C: CheckpointStrategy>(&self) -> DispatchTensor
    where
        DispatchTensor: DispatchKindConversion<B> + DispatchKindConversion<Autodiff<B, C>>,
    {
        match self {
            Self::Constant(tensor) => tensor.clone(),
            Self::Variable(kept, _) => {
                let value = primitive::<B>(kept.value()).expect("kept by this backend");
                dispatch::<Autodiff<B, C>>(constant::<B, C>(value))
            }
        }
    }
}

/// Gradients of the outputs, as far as the backward has come.
type Received = Arc<Mutex<Vec<Option<DispatchTensor>>>>;

#[derive(Clone)]
struct State {
    inputs: Vec<Input>,
    leaves: Vec<NodeId>,
    received: Received,
    rerun: Rerun,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut state = f.debug_struct("State");
        state.field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

/// Forward: a scalar that ties `tensor` to those in `tied`. Backward: hands `gradient` to `tensor`.
fn tie<B: Backend, C: CheckpointStrategy>(
    tied: Tracked<B, C>,
    tensor: &Tracked<B, C>,
    gradient: Option<FloatTensor<B>>,
    zero: FloatTensor<B>,
) -> Tracked<B, C> {
    let prepared = Tie
        .prepare::<C>([tied.node(), tensor.node()])
        .compute_bound()
        .stateful();
    finish(prepared, gradient, zero)
}

#[derive(Debug)]
struct Tie;

impl<B: Backend> Backward<B, 2> for Tie {
    type State = Option<FloatTensor<B>>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let [_, parent] = ops.parents;
        if let (Some(parent), Some(gradient)) = (parent, ops.state) {
            grads.register::<B>(parent.id, gradient);
        }
    }
}

#[derive(Clone, Debug)]
struct Leave {
    index: usize,
    received: Received,
}

#[derive(Debug)]
struct Output;

impl<B: Backend> Backward<B, 1> for Output
where
    DispatchTensor: DispatchKindConversion<B>,
{
    type State = Leave;

    fn backward(self, ops: Ops<Leave, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let Leave { index, received } = ops.state;
        lock(&received)[index] = Some(dispatch::<B>(gradient));
    }
}

/// How an output that nobody kept comes back.
#[derive(Debug)]
struct OutputAgain<B, C> {
    hub: NodeId,
    index: usize,
    state: State,
    backend: PhantomData<(B, C)>,
}

impl<B: Backend, C: CheckpointStrategy> RetroForward for OutputAgain<B, C>
where
    DispatchTensor: DispatchKindConversion<B> + DispatchKindConversion<Autodiff<B, C>>,
{
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        // Burn counts how often a parent is asked for, the hub included.
        states.get_state::<FloatTensor<B>>(&self.hub);
        let inputs = self.state.inputs.iter().map(Input::value::<B, C>).collect();
        let output = (self.state.rerun)(inputs, false)
            .outputs
            .swap_remove(self.index);
        let output = primitive::<Autodiff<B, C>>(output).expect("as in the forward");
        states.save(out_node, output.into_primitive());
    }
}

#[derive(Debug)]
struct Hub<C>(PhantomData<C>);

impl<B: Backend, C: CheckpointStrategy> Backward<B, 1> for Hub<C>
where
    DispatchTensor: DispatchKindConversion<B> + DispatchKindConversion<Autodiff<B, C>>,
{
    type State = State;

    fn backward(self, ops: Ops<State, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let state = ops.state;
        let received = std::mem::take(&mut *lock(&state.received));
        let mut wanted = Vec::new();
        let inputs = state.inputs.into_iter().map(|input| match input {
            Input::Constant(tensor) => tensor,
            Input::Variable(kept, target) => {
                let value = primitive::<B>(kept.take()).expect("kept by this backend");
                let mut leaf = constant::<B, C>(value);
                if let Some(target) = target {
                    leaf = Autodiff::<B, C>::float_set_require_grad(leaf, true);
                    wanted.push((target, leaf.clone()));
                }
                dispatch::<Autodiff<B, C>>(leaf)
            }
        });
        let again = (state.rerun)(inputs.collect(), true);

        let mut root: Option<Tracked<B, C>> = None;
        for (output, gradient) in again.outputs.into_iter().zip(received) {
            let (Some(output), Some(gradient)) = (primitive::<Autodiff<B, C>>(output), gradient)
            else {
                continue;
            };
            let gradient = primitive::<B>(gradient).expect("left by this backend");
            let zero = scalar::<B>(&gradient);
            let tied = root.unwrap_or_else(|| constant::<B, C>(zero.clone()));
            root = Some(tie::<B, C>(tied, &output, Some(gradient), zero));
        }
        let mut inner = root
            .filter(|root| root.is_tracked())
            .map(<Autodiff<B, C> as AutodiffBackend>::backward);
        let mut gradient_of = |leaf: &Tracked<B, C>| inner.as_mut()?.remove::<B>(leaf);

        for (target, leaf) in wanted {
            match gradient_of(&leaf) {
                Some(gradient) => grads.register::<B>(target.node, gradient),
                // The step behind an input runs in any case, and must find a gradient.
                None if !target.leaf => {
                    let value = leaf.primitive();
                    let dtype = FloatDType::from(value.dtype());
                    let zeros = B::float_zeros(value.shape(), &value.device(), dtype);
                    grads.register::<B>(target.node, zeros);
                }
                None => {}
            }
        }
        assert_eq!(again.leaves.len(), state.leaves.len(), "the same module");
        for (leaf, node) in again.leaves.into_iter().zip(state.leaves) {
            let leaf = primitive::<Autodiff<B, C>>(leaf).expect("as in the forward");
            if let Some(gradient) = gradient_of(&leaf) {
                grads.register::<B>(node, gradient);
            }
        }
    }
}
