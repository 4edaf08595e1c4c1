//! Gradient accumulation: k micro-batches, one update, the gradient of the mean over all samples.

use burn::module::Module;
use burn::optim::{GradientsAccumulator, GradientsParams};

/// Sums the gradients of a window of micro-batches and remembers what they weigh.
///
/// Each micro-batch's loss is its *mean over samples*, multiplied by [`micro_weight`] before the
/// backward; the sum divided by `weight` is then the mean over the samples of the
/// whole window, however short its last micro-batch is. BatchNorm still sees micro-batches: its
/// statistics are not those of the big batch.
pub struct Accumulator<M> {
    sum: GradientsAccumulator<M>,
    weight: f64,
    micro_batches: usize,
}

/// Weight of a micro-batch of `samples` where `nominal` is usual: near 1, so that neither f16 loss
/// nor gradients grow with the batch.
pub fn micro_weight(samples: usize, nominal: usize) -> f64 {
    samples as f64 / nominal.max(1) as f64
}

impl<M: Module> Default for Accumulator<M> {
    fn default() -> Self {
        Self {
            sum: GradientsAccumulator::new(),
            weight: 0.0,
            micro_batches: 0,
        }
    }
}

impl<M: Module> Accumulator<M> {
    /// Adds the gradients of one micro-batch whose loss was weighted by `weight`.
    pub fn add(&mut self, module: &M, gradients: GradientsParams, weight: f64) {
        self.sum.accumulate(module, gradients);
        self.weight += weight;
        self.micro_batches += 1;
    }

    /// Micro-batches since the last update.
    pub fn micro_batches(&self) -> usize {
        self.micro_batches
    }

    /// The summed gradients and their weight; the window is empty afterwards.
    pub fn take(&mut self) -> (GradientsParams, f64) {
        let weight = std::mem::take(&mut self.weight);
        self.micro_batches = 0;
        (self.sum.grads(), weight)
    }
}
