//! ResNets in integers.

use std::convert::Infallible;
use std::path::Path;

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use leanburn_compress::{Calibration, fold};
use leanburn_data::Batch;
use leanburn_models::ResNet;

use super::{Measured, Quantizes};
use crate::{Images, Score, TrainError};

impl Quantizes for Images {
    const MEASURE: Measured = Measured {
        key: "accuracy",
        of: |score: &Score| 100.0 * score.accuracy(),
        unit: " %",
        more_is_better: true,
    };

    fn folded(network: ResNet) -> Result<ResNet, TrainError> {
        Ok(network.fold_norms(fold)?)
    }

    fn without_norms(network: ResNet) -> ResNet {
        let shape = |mut conv: Conv2d, norm: &BatchNorm| {
            conv.bias = Some(norm.beta.clone());
            Ok::<_, Infallible>(conv)
        };
        let Ok(network) = network.fold_norms(shape);
        network
    }

    fn smoothed(
        _network: ResNet,
        _calibration: &Calibration,
        _alpha: f32,
    ) -> Result<ResNet, TrainError> {
        Err(TrainError::Recipe(
            "smoothing moves a norm's output into linear layers, and a ResNet's norms are folded into convolutions: \
             leave it out"
                .into(),
        ))
    }

    fn weight_only(_network: &ResNet) -> Vec<String> {
        Vec::new()
    }

    fn answers(network: &ResNet, batch: Batch) -> Option<Vec<i64>> {
        let logits = network.forward(batch.images);
        Some(logits.argmax(1).into_data().iter::<i64>().collect())
    }

    fn save_float(network: &ResNet, path: &Path) -> Result<(), TrainError> {
        Ok(network.save_weights(path)?)
    }

    fn published(network: &ResNet) -> (impl Fn(&str) -> String, bool) {
        (|path: &str| network.published_name(path), true)
    }
}
