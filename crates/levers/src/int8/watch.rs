//! Looking on while layers compute.

use std::fmt::Debug;
use std::sync::Arc;

use burn::module::{Module, Reparameterization};
use burn::nn::Linear;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;

/// Sees every input and output of the layers that it is attached to. The layer that it is shown carries the
/// [`Watched`] itself.
pub trait Watch: Debug + Send + Sync {
    /// `x` `[batch, in, height, width]`, `y` `[batch, out, height, width]`.
    fn conv2d(&self, layer: &Conv2d, x: &Tensor<4>, y: &Tensor<4>);

    /// `x` `[rows, in]`, `y` `[rows, out]`.
    fn linear(&self, layer: &Linear, x: &Tensor<2>, y: &Tensor<2>);
}

/// Attaches a [`Watch`] to a layer's weight, which stays as it is.
#[derive(Module, Debug)]
pub struct Watched {
    #[module(skip)]
    watch: Arc<dyn Watch>,
}

impl Watched {
    /// Calls of [`conv2d`](crate::conv2d) and [`linear`](crate::linear) will be shown to `watch`.
    pub fn by(watch: Arc<dyn Watch>) -> Self {
        Self { watch }
    }

    pub(crate) fn watch(&self) -> &dyn Watch {
        self.watch.as_ref()
    }
}

impl Reparameterization for Watched {
    const NAME: &'static str = "watched";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        base
    }
}
