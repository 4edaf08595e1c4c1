//! What a run came to: the machine-readable object of DESIGN, and `metrics.csv`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use leanburn_memory::{Measurement, to_json};
use serde_json::{Value, json};

use crate::{Backend, Recipe, TrainError};

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was run.
    pub recipe: Recipe,
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
    /// Training images per second.
    pub items_per_second: f64,
    /// Validation loss; unknown where the run was interrupted.
    pub loss: Option<f64>,
    /// Validation accuracy, a fraction; likewise.
    pub accuracy: Option<f64>,
    /// Files that could not be read.
    pub unreadable: Vec<String>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
    /// The most demanding step.
    pub memory: Option<Measurement>,
}

impl Report {
    /// Names as in DESIGN's "Machine-readable results".
    pub fn to_json(&self) -> Value {
        json!({
            "model": self.recipe.model.depth.to_string(),
            "backend": self.backend.name(),
            "precision": self.precision,
            "checkpoint": self.recipe.checkpoint.to_string(),
            "offload": self.recipe.offload.name(),
            "batch": self.recipe.train.batch,
            "image_size": self.recipe.data.image_size,
            "accumulate": self.recipe.train.accumulate,
            "optimizer": self.recipe.optimizer.name.name(),
            "data": self.data,
            "parameters": self.parameters,
            "steps": self.steps,
            "skipped_steps": self.skipped_steps,
            "seconds": self.seconds,
            "items_per_second": self.items_per_second,
            "loss": self.loss,
            "accuracy": self.accuracy,
            "unreadable": self.unreadable,
            "interrupted": self.interrupted,
            "memory": to_json(None, self.memory.as_ref()),
        })
    }

    /// A few lines for people.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "{} in {} on {}: {} updates ({} skipped) in {:.0} s, {:.1} images/s\n",
            self.recipe.model.depth,
            self.precision,
            self.data,
            self.steps,
            self.skipped_steps,
            self.seconds,
            self.items_per_second,
        );
        if let (Some(accuracy), Some(loss)) = (self.accuracy, self.loss) {
            let percent = 100.0 * accuracy;
            text += &format!("validation accuracy {percent:.2} %, loss {loss:.4}\n");
        }
        if let [first, ..] = self.unreadable.as_slice() {
            text += &format!(
                "{} unreadable files skipped, first {first}\n",
                self.unreadable.len()
            );
        }
        text
    }

    /// Writes `report.json`.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        std::fs::write(path, format!("{:#}\n", self.to_json())).map_err(TrainError::io(path))
    }
}

/// One line per epoch.
pub(crate) struct Metrics(File);

impl Metrics {
    /// Opens the file; a resumed run goes on in it.
    pub fn open(path: &Path, resumed: bool) -> Result<Self, TrainError> {
        let fresh = !(resumed && path.exists());
        let mut options = OpenOptions::new();
        options
            .create(true)
            .write(true)
            .append(!fresh)
            .truncate(fresh);
        let mut file = options.open(path).map_err(TrainError::io(path))?;
        if fresh {
            writeln!(
                file,
                "epoch,update,skipped,lr,train_loss,val_loss,accuracy,images_per_second,peak_bytes"
            )
            .map_err(TrainError::io(path))?;
        }
        Ok(Self(file))
    }

    /// Appends a line.
    pub fn line(&mut self, path: &Path, fields: &[String]) -> Result<(), TrainError> {
        writeln!(self.0, "{}", fields.join(",")).map_err(TrainError::io(path))
    }
}
