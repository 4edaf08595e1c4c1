//! Settings of a trainer.

use crate::{Adam, OptimizerKind, Recipe, Task};

/// Settings of a trainer that no part of it owns.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Samples that count in a full micro-batch.
    pub batch: usize,
    /// Largest global gradient norm.
    pub clip_norm: Option<f64>,
    /// Which optimizer, for its row in the ledger.
    pub optimizer: OptimizerKind,
    /// Weight decay on matrices and filters.
    pub weight_decay: f64,
    /// Of AdamW.
    pub adam: Adam,
    /// For the device's random numbers.
    pub seed: u64,
}

impl Settings {
    /// Those of a recipe.
    pub fn of<T: Task>(recipe: &Recipe<T>) -> Self {
        Self {
            batch: T::micro_batch(recipe),
            clip_norm: Some(recipe.optimizer.clip_norm).filter(|norm| *norm > 0.0),
            optimizer: recipe.optimizer.name,
            weight_decay: recipe.optimizer.weight_decay,
            adam: Adam {
                beta2: recipe.optimizer.beta2,
                epsilon: recipe.optimizer.epsilon,
            },
            seed: recipe.train.seed,
        }
    }

    /// SGD without clipping or decay, to measure steps with.
    pub fn plain(batch: usize) -> Self {
        Self {
            batch,
            clip_norm: None,
            optimizer: OptimizerKind::Sgd,
            weight_decay: 0.0,
            adam: Adam::default(),
            seed: 0,
        }
    }
}
