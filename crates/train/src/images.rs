//! Image classification with a ResNet.

mod args;
mod classify;
mod learner;
mod loaders;
mod network;
mod recipe;

use std::path::PathBuf;

use leanburn_data::Batch;
use serde_json::{Value, json};

use crate::recipe::{Defaults, OptimizerRecipe, TrainRecipe, within};
use crate::task::Measure;
use crate::{OptimizerKind, Recipe, Schedule, Score, Task, TrainError};

pub use args::ImageArgs;
pub use learner::LearnerResNet;
pub use loaders::ImageLoaders;
pub use recipe::{ImageData, ResNetRecipe};

/// Image classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Images;

impl Task for Images {
    type Model = ResNetRecipe;
    type Data = ImageData;
    type Loaders = ImageLoaders;
    type Batch = Batch;

    const ITEMS: &'static str = "images";
    const MEASURES: &'static [Measure] = &[("accuracy", Score::accuracy)];

    fn defaults() -> Defaults {
        Defaults {
            train: TrainRecipe {
                batch: 64,
                accumulate: 1,
                epochs: 4,
                steps: None,
                seed: 0,
                save_every: 0,
                cleanup: false,
            },
            optimizer: OptimizerRecipe {
                name: OptimizerKind::AdamW,
                lr: 2e-3,
                weight_decay: 1e-2,
                clip_norm: 5.0,
                // Burn's.
                beta2: 0.999,
                epsilon: 1e-5,
            },
            schedule: Schedule::default(),
        }
    }

    fn validate(recipe: &Recipe<Self>) -> Result<(), TrainError> {
        let (model, data) = (&recipe.model, &recipe.data);
        within(model.width > 0, "width (model.width)", "at least 1")?;
        within(
            (8..=4096).contains(&data.image_size),
            "image-size (data.image_size)",
            "8 to 4096 pixels",
        )?;
        let pixels = (recipe.train.batch as u64).saturating_mul((data.image_size as u64).pow(2));
        within(
            pixels <= 1 << 40 && model.width <= 1 << 14,
            "batch x image-size x image-size, and width (model.width),",
            "at most 2^40 pixels, and 16384",
        )?;
        within(
            data.split_seed.is_none() || data.source == "digits",
            "data.split_seed",
            "left out for any data but the digits",
        )?;
        within(data.workers <= 64, "workers (data.workers)", "0 to 64")
    }

    fn source(recipe: &mut Recipe<Self>) -> Option<&mut String> {
        Some(&mut recipe.data.source)
    }

    fn weights(recipe: &mut Recipe<Self>) -> Option<&mut Option<PathBuf>> {
        Some(&mut recipe.model.weights)
    }

    fn open(recipe: &Recipe<Self>) -> Result<ImageLoaders, TrainError> {
        ImageLoaders::open(recipe)
    }

    fn model_name(model: &ResNetRecipe) -> String {
        model.depth.to_string()
    }

    /// With BatchNorm a window is not one big batch.
    fn window_remark(recipe: &Recipe<Self>) -> String {
        let batch = recipe.train.batch;
        let whole = batch.saturating_mul(recipe.train.accumulate);
        format!(" (BatchNorm sees {batch} at a time, not {whole})")
    }

    fn facts(recipe: &Recipe<Self>) -> Vec<(&'static str, Value)> {
        vec![("image_size", json!(recipe.data.image_size))]
    }

    fn tell(score: &Score) -> String {
        format!("accuracy {:.2} %", 100.0 * score.accuracy())
    }
}
