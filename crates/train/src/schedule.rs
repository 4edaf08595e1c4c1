//! Learning rate per update: linear warm-up, then constant, cosine or steps; Burn's schedulers.

use burn::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::lr_scheduler::sequential::SequentialLrSchedulerConfig;
use burn::lr_scheduler::step::StepLrSchedulerConfig;
use burn::lr_scheduler::{LrSchedulerConfig, module_lr_scheduler::ModuleLrScheduler};
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::recipe::table;

/// The shape after the warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// The same throughout.
    Constant,
    /// Down to a hundredth along a half cosine.
    #[default]
    Cosine,
    /// A tenth after each third of the run.
    Step,
}

table! {
    /// How the learning rate moves: `[schedule]`.
    Schedule = schedule {
        /// The shape after the warm-up.
        shape: Shape,
        /// Fraction of the updates that the learning rate takes to rise to its full value.
        warmup: f64,
    }
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            shape: Shape::Cosine,
            warmup: 0.1,
        }
    }
}

impl Schedule {
    /// The scheduler for a run of `updates`, already moved past the first `done` of them.
    ///
    /// It is stepped once per *applied* update, so that skipped ones do not shorten the warm-up.
    pub fn start(&self, lr: f64, updates: u64, done: u64) -> Result<ModuleLrScheduler, TrainError> {
        let warmup = (self.warmup * updates as f64).round() as usize;
        let rest = (updates as usize).saturating_sub(warmup).max(1);
        let shape = match self.shape {
            Shape::Constant => {
                LrSchedulerConfig::Linear(LinearLrSchedulerConfig::new(lr, lr, rest))
            }
            Shape::Cosine => {
                let config = CosineAnnealingLrSchedulerConfig::new(lr, rest);
                LrSchedulerConfig::Cosine(config.with_min_lr(lr / 100.0))
            }
            Shape::Step => {
                let config = StepLrSchedulerConfig::new(lr, rest.div_ceil(3));
                LrSchedulerConfig::Step(config.with_gamma(0.1))
            }
        };
        let config = if warmup == 0 {
            SequentialLrSchedulerConfig::new(vec![shape], vec![])
        } else {
            let first = lr / warmup as f64;
            let rise = LrSchedulerConfig::Linear(LinearLrSchedulerConfig::new(first, lr, warmup));
            SequentialLrSchedulerConfig::new(vec![rise, shape], vec![warmup])
        };
        let mut scheduler = config
            .init()
            .map_err(|cause| TrainError::Recipe(format!("learning rate {lr}: {cause}")))?;
        // A schedule is a function of the update, so replaying it restores it exactly.
        for _ in 0..done {
            scheduler.step();
        }
        Ok(scheduler)
    }
}
