//! What the loop needs to know of a model, and how an image classifier answers.

use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{DType, Tensor};
use leanburn_data::Batch;
use leanburn_memory::Bytes;
use leanburn_models::ResNet;

/// A model that [`Trainer`](crate::Trainer) can train.
pub trait Trainable: Module + Sync {
    /// What one forward takes.
    type Batch;

    /// Samples in a batch: what the mean of the loss is over.
    fn samples(batch: &Self::Batch) -> usize;

    /// Bytes of a batch on the device.
    fn input_bytes(batch: &Self::Batch) -> Bytes;

    /// Mean loss over the samples, `[1]`, f32.
    fn loss(&self, batch: Self::Batch) -> Tensor<1>;

    /// Scores a batch without gradients.
    fn score(&self, batch: Self::Batch) -> Score;
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
}

impl Score {
    /// Both together.
    pub fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.loss_sum += other.loss_sum;
        self.correct += other.correct;
    }

    /// Mean loss.
    pub fn loss(&self) -> f64 {
        self.loss_sum / self.samples.max(1) as f64
    }

    /// Fraction that was right.
    pub fn accuracy(&self) -> f64 {
        self.correct as f64 / self.samples.max(1) as f64
    }
}

impl Trainable for ResNet {
    type Batch = Batch;

    fn samples(batch: &Batch) -> usize {
        batch.len()
    }

    fn input_bytes(batch: &Batch) -> Bytes {
        let of =
            |shape: &[usize], dtype: DType| Bytes::of_elements(shape, dtype).unwrap_or_default();
        let images = of(&batch.images.dims(), batch.images.dtype());
        let targets = of(&batch.targets.dims(), batch.targets.dtype());
        Bytes(images.0 + targets.0)
    }

    fn loss(&self, batch: Batch) -> Tensor<1> {
        let logits = self.forward(batch.images);
        let criterion = CrossEntropyLossConfig::new().init(&logits.device());
        criterion.forward(logits, batch.targets)
    }

    fn score(&self, batch: Batch) -> Score {
        let samples = batch.len();
        let logits = self.forward(batch.images);
        let right = logits
            .clone()
            .argmax(1)
            .flatten::<1>(0, 1)
            .equal(batch.targets.clone());
        let criterion = CrossEntropyLossConfig::new().init(&logits.device());
        let loss: f64 = criterion.forward(logits, batch.targets).into_scalar();
        Score {
            samples,
            loss_sum: loss * samples as f64,
            correct: right.int().sum().into_scalar::<i64>() as usize,
        }
    }
}
