//! Block checkpointing: keep a block's inputs, run the block again in the backward.
//!
//! ```
//! use burn::nn::{Linear, LinearConfig};
//! use burn::tensor::{Device, Tensor};
//! use leanburn_levers::checkpoint;
//!
//! # #[cfg(feature = "flex")] {
//! let device = Device::flex().autodiff();
//! let block: Linear = LinearConfig::new(8, 8).init(&device);
//! let x = Tensor::<2>::ones([4, 8], &device);
//! let y: Tensor<2> = checkpoint(&block, x, |block, x: Tensor<2>| block.forward(x));
//! let gradients = y.sum().backward();
//! assert!(block.weight.base().grad(&gradients).is_some());
//! # }
//! ```
//!
//! Loss and gradients are those of the plain forward: the recomputation sees the same inputs, the
//! same parameters and training flags, the same random numbers ([`random::seed`]), and running
//! statistics of its own, so that those of the model move once. `docs/checkpointing.md` says what
//! is kept, when to use it, and what it costs.

mod chain;
mod node;
mod parking;
mod policy;
pub mod random;
mod replica;
mod tensors;

use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::{
    Backend, Dispatch, DispatchAutodiffContext, DispatchTensor, DispatchTensorKind, TensorMetadata,
};
use burn::module::Module;

use node::{Again, Call, CheckpointOps, Rerun};
use replica::{Parts, Replica};

use crate::ops::Record;

pub use chain::{Chain, Link};
pub use policy::{CheckpointError, CheckpointPolicy, Offload, Segmentation};
pub use tensors::Tensors;

/// `f(module, inputs)`, of which only the inputs are kept for the backward.
///
/// `f` runs twice: now, without a graph, and in the backward. It must do the same both times, and
/// use no other tensors that carry gradients than the parameters of `module` and the `inputs`.
///
/// # Panics
///
/// When `f` does use such a tensor; when a parameter of `module` is itself the result of a
/// computation; while a `DistributedContext` is active. A panic inside the recomputation comes out
/// of `backward` as it is.
pub fn checkpoint<M, I, O, F>(module: &M, inputs: I, f: F) -> O
where
    M: Module + Sync + 'static,
    I: Tensors,
    O: Tensors,
    F: Fn(&M, I) -> O + Send + Sync + 'static,
{
    Checkpoint::default().run(module, inputs, f)
}

/// `f(module, inputs)` for a cheap `f` with a large output, which nobody keeps.
///
/// As [`checkpoint`], and besides, operations that read the output and would keep it for their own
/// backward (a matrix product, a convolution) recompute it too. `f` then runs three times, so it
/// should be an activation or a norm rather than a product.
pub fn recompute<M, I, O, F>(module: &M, inputs: I, f: F) -> O
where
    M: Module + Sync + 'static,
    I: Tensors,
    O: Tensors,
    F: Fn(&M, I) -> O + Send + Sync + 'static,
{
    let cheap = Checkpoint {
        drop_outputs: true,
        ..Checkpoint::default()
    };
    cheap.run(module, inputs, f)
}

/// [`checkpoint`] with settings.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    /// Draw the same random numbers in the recomputation. Blocks without dropout can go without,
    /// and leave the device's generator alone.
    pub preserve_rng: bool,
    /// Where the inputs wait.
    pub offload: Offload,
    /// Let operations that read the output recompute it, as [`recompute`] does.
    pub drop_outputs: bool,
}

impl Default for Checkpoint {
    fn default() -> Self {
        Self {
            preserve_rng: true,
            offload: Offload::None,
            drop_outputs: false,
        }
    }
}

impl Checkpoint {
    /// See [`checkpoint`].
    pub fn run<M, I, O, F>(&self, module: &M, inputs: I, f: F) -> O
    where
        M: Module + Sync + 'static,
        I: Tensors,
        O: Tensors,
        F: Fn(&M, I) -> O + Send + Sync + 'static,
    {
        let mut floats = Vec::new();
        let rest = inputs.split(&mut floats);
        let parts = Parts::of(module);
        let random = Draws::new(self.preserve_rng, floats.iter().chain(&parts.on_autodiff));

        let tracked = floats.iter().find(|tensor| Dispatch::is_tracked(tensor));
        let Some(anchor) = tracked.or(parts.leaves.first()).cloned() else {
            return random.first(|| f(module, I::join(rest, &mut floats.into_iter())));
        };
        let DispatchAutodiffContext::Enabled(strategy) = anchor.autodiff else {
            unreachable!("a tracked tensor is on an autodiff device")
        };
        let leaves = parts.leaves.clone();
        let replica = Replica::new(module, parts, strategy, is_capturing(&anchor));

        let mut bare = floats.iter().cloned().map(untracked);
        let bare = I::join(rest.clone(), &mut bare);
        let record = Record::default();
        let output = record.first(|| random.first(|| f(&module.clone().no_grad(), bare)));
        let mut outputs = Vec::new();
        let output_rest = output.split(&mut outputs);
        assert!(
            !outputs.iter().any(Dispatch::is_tracked),
            "checkpoint: the block uses a tensor that carries gradients and is neither a parameter \
             of its module nor among its inputs; pass it as an input"
        );

        let rerun: Rerun = Arc::new(move |floats, tracked| {
            let fresh = replica.instance(tracked);
            let inputs = I::join(rest.clone(), &mut floats.into_iter());
            let mut outputs = Vec::new();
            record
                .again(|| random.again(|| f(&fresh, inputs)))
                .split(&mut outputs);
            Again {
                outputs,
                leaves: Parts::of(&fresh).leaves,
            }
        });
        let call = Call {
            inputs: floats,
            leaves,
            outputs,
            rerun,
            park: self.offload == Offload::Host,
            drop_outputs: self.drop_outputs,
        };
        let outputs = Dispatch::checkpoint_call(anchor, call);
        O::join(output_rest, &mut outputs.into_iter())
    }
}

fn untracked(tensor: DispatchTensor) -> DispatchTensor {
    match Dispatch::is_tracked(&tensor) {
        // `detach` alone would keep a leaf's wish for a gradient.
        true => <Dispatch as FloatTensorOps<Dispatch>>::float_set_require_grad(tensor, false),
        false => tensor,
    }
}

/// Whether the tensor's device records operations instead of running them.
fn is_capturing(tensor: &DispatchTensor) -> bool {
    match &tensor.kind {
        DispatchTensorKind::Capture(_) => true,
        DispatchTensorKind::Autodiff(inner) => {
            matches!(**inner, DispatchTensorKind::Capture(_))
        }
        _ => false,
    }
}

/// The block's own random numbers: a seed, and the device to set it on.
struct Draws(Option<(u64, burn::backend::DispatchDevice)>);

impl Draws {
    /// The decision must fall alike with and without gradients, for blocks inside blocks.
    fn new<'a>(preserve: bool, tensors: impl Iterator<Item = &'a DispatchTensor>) -> Self {
        let on_autodiff = |tensor: &&DispatchTensor| {
            tensor.autodiff != DispatchAutodiffContext::Disabled && !is_capturing(tensor)
        };
        let example = tensors.into_iter().find(on_autodiff).filter(|_| preserve);
        Self(example.map(|tensor| (random::draw(), tensor.device())))
    }

    fn first<R>(&self, f: impl FnOnce() -> R) -> R {
        let Some((seed, device)) = &self.0 else {
            return f();
        };
        Dispatch::seed(device, *seed);
        random::within(*seed, f)
    }

    fn again<R>(&self, f: impl FnOnce() -> R) -> R {
        let result = self.first(f);
        if let Some((seed, device)) = &self.0 {
            Dispatch::seed(device, random::after(*seed));
        }
        result
    }
}
