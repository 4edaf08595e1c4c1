//! What a run came to: the machine-readable object, and a few lines for people.

use std::path::Path;

use leanburn_memory::{Measurement, Prediction, Table, compare, to_json};
use serde_json::{Map, Value, json};

use crate::{Backend, Recipe, Score, Task, TrainError};

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Report<T: Task> {
    /// What was run.
    pub recipe: Recipe<T>,
    /// Where.
    pub backend: Backend,
    /// Short name of the compute dtype.
    pub precision: &'static str,
    /// Name of the data.
    pub data: String,
    /// Trainable parameters.
    pub parameters: u64,
    /// Updates applied.
    pub steps: u64,
    /// Updates skipped.
    pub skipped_steps: u64,
    /// Of the training, evaluation and saving included.
    pub seconds: f64,
    /// Training items per second.
    pub items_per_second: f64,
    /// On the validation data; unknown where the run was interrupted.
    pub score: Option<Score>,
    /// Files that could not be read.
    pub unreadable: Vec<String>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
    /// The most demanding step.
    pub memory: Option<Measurement>,
    /// What was predicted of it.
    pub predicted: Option<Prediction>,
    /// What it ran on: names and values.
    pub environment: Vec<(String, String)>,
}

impl<T: Task> Report<T> {
    /// One object; the task's facts and measures stand among the entries that every run has.
    pub fn to_json(&self) -> Value {
        let predicted = self.predicted.as_ref().map(Prediction::step);
        let environment = self.environment.iter();
        let environment: Map<String, Value> = environment
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let mut report = json!({
            "model": T::model_name(&self.recipe.model),
            "backend": self.backend.to_string(),
            "precision": self.precision,
            "checkpoint": self.recipe.checkpoint.to_string(),
            "offload": self.recipe.offload.name(),
            "batch": self.recipe.train.batch,
            "accumulate": self.recipe.train.accumulate,
            "optimizer": self.recipe.optimizer.name.name(),
            "data": self.data,
            "parameters": self.parameters,
            "steps": self.steps,
            "skipped_steps": self.skipped_steps,
            "seconds": self.seconds,
            "items_per_second": self.items_per_second,
            "loss": self.score.map(|score| score.loss()),
            "unreadable": self.unreadable,
            "interrupted": self.interrupted,
            "memory": to_json(predicted.as_ref(), self.memory.as_ref()),
            "environment": environment,
        });
        report[format!("{}_per_second", T::ITEMS)] = json!(self.items_per_second);
        for (name, fact) in T::facts(&self.recipe) {
            report[name] = fact;
        }
        for (name, of) in T::MEASURES {
            report[*name] = json!(self.score.as_ref().map(of));
        }
        report
    }

    /// A few lines for people.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} in {} on {}: {} updates ({} skipped) in {:.0} s, {:.1} {}/s\n",
            T::model_name(&self.recipe.model),
            self.precision,
            self.data,
            self.steps,
            self.skipped_steps,
            self.seconds,
            self.items_per_second,
            T::ITEMS,
        );
        if let Some(score) = &self.score {
            let measures = T::tell(score);
            text += &format!("validation {measures}, loss {:.4}\n", score.loss());
        }
        if let [first, ..] = self.unreadable.as_slice() {
            text += &format!(
                "{} unreadable files skipped, first {first}\n",
                self.unreadable.len()
            );
        }
        text
    }

    /// The memory table, and a warning where the prediction was off; empty where nothing was measured.
    pub fn memory_table(&self, fp32: Option<&Measurement>) -> String {
        let Some(measured) = &self.memory else {
            return String::new();
        };
        let predicted = self.predicted.as_ref().map(Prediction::step);
        let table = Table {
            predicted: predicted.as_ref(),
            measured: Some(measured),
            fp32,
        };
        let compared = self
            .predicted
            .as_ref()
            .map(|predicted| compare(predicted, measured));
        match compared.and_then(|compared| compared.warning()) {
            Some(warning) => format!("{table}warning: {warning}\n"),
            None => table.to_string(),
        }
    }

    /// Writes `report.json`.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        std::fs::write(path, format!("{:#}\n", self.to_json())).map_err(TrainError::io(path))
    }
}
