//! A recipe: everything that decides what a run does, in one TOML file. Unknown keys are refused.

mod tables;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::Path;

use burn::tensor::Device;
use leanburn_levers::{CheckpointPolicy, Offload, Policy};
use leanburn_memory::Bytes;
use serde::{Deserialize, Serialize};

use crate::{Backend, Schedule, Task, TrainError};

pub(crate) use tables::table;
pub use tables::{Defaults, LossScaleRecipe, OptimizerRecipe, PrecisionRecipe, TrainRecipe};

/// The whole recipe; every key has a default, which is the task's main job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "", default, deny_unknown_fields)]
pub struct Recipe<T: Task> {
    /// Where to compute.
    pub backend: Backend,
    /// The memory that a step may take, such as `8GiB`: levers are pulled at the start until it fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
    /// What the backward recomputes: `none`, `cheap`, `every-block`, `every:2`, `sqrt`, one of the
    /// last three with `+cheap`, or `schedule:` with the pieces of the chain.
    pub checkpoint: CheckpointPolicy,
    /// Where the inputs of recomputed blocks wait: `none` (on the device) or `host`.
    pub offload: Offload,
    /// The network.
    pub model: T::Model,
    /// What it learns from.
    pub data: T::Data,
    /// Batches, epochs, seed.
    #[serde(deserialize_with = "TrainRecipe::over::<T, _>")]
    pub train: TrainRecipe,
    /// Dtypes and loss scale.
    pub precision: PrecisionRecipe,
    /// Optimizer and learning rate.
    #[serde(deserialize_with = "OptimizerRecipe::over::<T, _>")]
    pub optimizer: OptimizerRecipe,
    /// How the learning rate moves.
    #[serde(deserialize_with = "Schedule::over::<T, _>")]
    pub schedule: Schedule,
}

impl<T: Task> Default for Recipe<T> {
    fn default() -> Self {
        let defaults = T::defaults();
        Self {
            backend: Backend::default(),
            memory: None,
            checkpoint: CheckpointPolicy::default(),
            offload: Offload::default(),
            model: T::Model::default(),
            data: T::Data::default(),
            train: defaults.train,
            precision: PrecisionRecipe::default(),
            optimizer: defaults.optimizer,
            schedule: defaults.schedule,
        }
    }
}

impl<T: Task> Recipe<T> {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        let text = fs::read_to_string(path).map_err(TrainError::io(path))?;
        toml::from_str(&text).map_err(|cause| TrainError::RecipeFile {
            path: path.to_owned(),
            cause: one_line(&text, &cause),
        })
    }

    /// Writes the resolved recipe beside the results.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let text =
            toml::to_string_pretty(self).map_err(|cause| TrainError::Recipe(cause.to_string()))?;
        fs::write(path, text).map_err(TrainError::io(path))
    }

    /// Checks every number; names the key and its range.
    pub fn validate(&self) -> Result<(), TrainError> {
        let (t, o) = (&self.train, &self.optimizer);
        within(
            (1..=MOST).contains(&t.batch),
            "batch (train.batch)",
            "1 to 16777216",
        )?;
        within(
            (1..=MOST).contains(&t.accumulate),
            "accumulate (train.accumulate)",
            "1 to 16777216",
        )?;
        within(t.epochs > 0, "epochs (train.epochs)", "at least 1")?;
        within(t.steps != Some(0), "steps (train.steps)", "at least 1")?;
        T::validate(self)?;
        within(
            o.lr > 0.0 && o.lr <= 1.0,
            "lr (optimizer.lr)",
            "above 0 and at most 1",
        )?;
        within(
            (0.0..=1.0).contains(&o.weight_decay),
            "optimizer.weight_decay",
            "0 to 1",
        )?;
        within(
            (0.0..1.0).contains(&o.beta2),
            "optimizer.beta2",
            "0 to below 1",
        )?;
        within(
            o.epsilon > 0.0 && o.epsilon < 1.0,
            "optimizer.epsilon",
            "above 0 and below 1",
        )?;
        within(
            o.clip_norm >= 0.0 && o.clip_norm.is_finite(),
            "optimizer.clip_norm",
            "0 (off) or a positive number",
        )?;
        within(
            (0.0..1.0).contains(&self.schedule.warmup),
            "schedule.warmup",
            "a fraction, 0 to below 1",
        )?;
        if self.precision.policy != "auto" {
            self.precision.policy.parse::<Policy>()?;
        }
        if self.offload == Offload::Host && !self.checkpoint.has_segments() {
            return Err(TrainError::Recipe(format!(
                "offload = host moves the inputs of recomputed blocks, and checkpoint = {} recomputes \
                 none; use every-block, every:N or sqrt",
                self.checkpoint
            )));
        }
        Ok(())
    }

    /// The dtypes on a device.
    pub fn policy(&self, device: &Device) -> Result<Policy, TrainError> {
        Ok(Policy::resolve(&self.precision.policy, device)?)
    }

    /// Updates of a run over this many micro-batches an epoch.
    pub fn updates(&self, micro_batches: usize) -> u64 {
        let an_epoch = micro_batches.div_ceil(self.train.accumulate) as u64;
        let all = an_epoch.saturating_mul(self.train.epochs as u64);
        self.train.steps.map_or(all, |steps| steps.min(all)).max(1)
    }

    /// What one update is made of, in words.
    pub fn window(&self) -> String {
        let (items, noun) = (T::micro_batch(self), T::ITEMS);
        match self.train.accumulate {
            1 => format!("{items} {noun} an update"),
            k => format!(
                "{k} micro-batches of {items} {noun} an update{}",
                T::window_remark(self)
            ),
        }
    }
}

/// Samples of a micro-batch, and micro-batches of an update: far beyond any device, and small enough that sizes
/// computed from them do not overflow.
pub(crate) const MOST: usize = 1 << 24;

/// The check of one key; `range` completes "must be".
pub fn within(ok: bool, key: &str, range: &str) -> Result<(), TrainError> {
    match ok {
        true => Ok(()),
        false => Err(TrainError::Recipe(format!("{key} must be {range}"))),
    }
}

fn one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start].matches('\n').count() + 1);
    let message = error.message().replace('\n', " ");
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}
