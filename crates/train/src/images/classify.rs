//! How an image classifier answers.

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::{DType, Tensor};
use leanburn_data::Batch;
use leanburn_memory::Bytes;
use leanburn_models::ResNet;

use crate::{Score, Trainable};

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
            ..Score::default()
        }
    }
}
