//! Optimizer state that loads on the host.
//!
//! `ModuleOptimizer::load_record` puts state on `Device::default()`, which goes by compiled features
//! and panics where wgpu is compiled in and the machine has no GPU. Loaded here, the state moves to
//! its parameter's device at the next step, as Burn does it anyway.

use burn::optim::{LearningRate, Optimizer, RecordState, StateSink, StateSource};
use burn::tensor::{Device, Tensor};

/// An optimizer whose records load without a GPU.
#[derive(Clone)]
pub struct Resumable<O>(pub O);

/// Its state.
#[derive(Clone)]
pub struct OnHost<S>(S);

impl<S: RecordState> RecordState for OnHost<S> {
    fn state_flatten(&self, prefix: &str, out: &mut StateSink) {
        self.0.state_flatten(prefix, out);
    }

    #[cfg_attr(feature = "flex", allow(unused_variables))]
    fn state_unflatten(prefix: &str, source: &mut StateSource, device: &Device) -> Option<Self> {
        #[cfg(feature = "flex")]
        let device = &Device::flex();
        S::state_unflatten(prefix, source, device).map(Self)
    }
}

impl<O: Optimizer> Optimizer for Resumable<O> {
    type State<const D: usize> = OnHost<O::State<D>>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<Self::State<D>>,
    ) -> (Tensor<D>, Option<Self::State<D>>) {
        let (tensor, state) = self.0.step(lr, tensor, grad, state.map(|state| state.0));
        (tensor, state.map(OnHost))
    }

    fn to_device<const D: usize>(state: Self::State<D>, device: &Device) -> Self::State<D> {
        OnHost(O::to_device(state.0, device))
    }
}
