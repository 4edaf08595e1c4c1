//! What the trainer needs to know of a model.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use leanburn_memory::Bytes;

/// A model that [`Trainer`](crate::Trainer) can train.
pub trait Trainable: Module + Sync {
    /// What one forward takes.
    type Batch;

    /// Samples or tokens in a batch that count: what the mean of the loss is over. May be 0.
    fn samples(batch: &Self::Batch) -> usize;

    /// Bytes of a batch on the device.
    fn input_bytes(batch: &Self::Batch) -> Bytes;

    /// Mean loss over the samples, `[1]`, f32. Not asked of a batch in which none counts.
    fn loss(&self, batch: Self::Batch) -> Tensor<1>;

    /// Scores a batch without gradients.
    fn score(&self, batch: Self::Batch) -> Score;
}

/// Burn creates parameters at first use; this is one, of all of them.
pub(crate) fn make_parameters(model: &impl Module) {
    struct Touch;

    impl ModuleVisitor for Touch {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let _ = param.base();
        }
    }
    model.visit(&mut Touch);
}

/// Sums over evaluated samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Samples.
    pub samples: usize,
    /// Sum of their losses.
    pub loss_sum: f64,
    /// How many were right.
    pub correct: usize,
    /// Bytes of text that they stand for.
    pub bytes: f64,
}

impl Score {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.loss_sum += other.loss_sum;
        self.correct += other.correct;
        self.bytes += other.bytes;
    }

    /// Mean loss.
    pub fn loss(&self) -> f64 {
        self.loss_sum / self.samples.max(1) as f64
    }

    /// Bits that a byte of text takes under the model.
    pub fn bits_per_byte(&self) -> f64 {
        self.loss_sum / std::f64::consts::LN_2 / self.bytes.max(f64::MIN_POSITIVE)
    }

    /// Perplexity of a token.
    pub fn perplexity(&self) -> f64 {
        self.loss().exp()
    }

    /// Fraction that was right.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.samples.max(1) as f64
    }
}
