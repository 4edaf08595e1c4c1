//! `metrics.csv`: one line per epoch.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use leanburn_memory::Bytes;

use crate::{Score, Task, TrainError};

/// The open file.
pub struct Metrics {
    file: File,
    path: PathBuf,
}

/// What a line says of an epoch.
pub struct Line {
    /// Epoch, from 1.
    pub epoch: usize,
    /// Updates tried since the start of the run.
    pub update: u64,
    /// Of these, updates skipped.
    pub skipped: u64,
    /// Last learning rate.
    pub lr: f64,
    /// Mean over the updates.
    pub train_loss: f64,
    /// On the validation data.
    pub score: Score,
    /// Mean since the start.
    pub items_per_second: f64,
    /// Of the most demanding step, where the backend reports it.
    pub peak: Option<Bytes>,
}

impl Metrics {
    /// Opens the file; a resumed run goes on in it.
    pub fn open<T: Task>(path: PathBuf, resumed: bool) -> Result<Self, TrainError> {
        let fresh = !(resumed && path.exists());
        let mut options = OpenOptions::new();
        options
            .create(true)
            .write(true)
            .append(!fresh)
            .truncate(fresh);
        let file = options.open(&path).map_err(TrainError::io(&path))?;
        let mut metrics = Self { file, path };
        if fresh {
            let mut columns = vec!["epoch", "update", "skipped", "lr", "train_loss", "val_loss"];
            columns.extend(T::MEASURES.iter().map(|(name, _)| *name));
            let speed = format!("{}_per_second", T::ITEMS);
            columns.extend([speed.as_str(), "peak_bytes"]);
            metrics.write(&columns.join(","))?;
        }
        Ok(metrics)
    }

    /// Appends a line.
    pub fn line<T: Task>(&mut self, line: &Line) -> Result<(), TrainError> {
        let mut fields = vec![
            line.epoch.to_string(),
            line.update.to_string(),
            line.skipped.to_string(),
            line.lr.to_string(),
            line.train_loss.to_string(),
            line.score.loss().to_string(),
        ];
        fields.extend(
            T::MEASURES
                .iter()
                .map(|(_, of)| of(&line.score).to_string()),
        );
        fields.push(line.items_per_second.to_string());
        fields.push(line.peak.map_or(String::new(), |peak| peak.0.to_string()));
        self.write(&fields.join(","))
    }

    fn write(&mut self, line: &str) -> Result<(), TrainError> {
        writeln!(self.file, "{line}").map_err(TrainError::io(&self.path))
    }
}
