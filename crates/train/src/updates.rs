//! `updates.csv`: one line per update.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use leanburn_levers::Verdict;
use leanburn_memory::Bytes;

use crate::{TrainError, Trainable, Trainer, Update};

/// The columns; a loss, norm or rate that does not exist is `NaN`, and bytes that nobody reports are empty.
const COLUMNS: &str =
    "update,epoch,loss,norm,lr,loss_scale,outcome,items,seconds,in_use_bytes,peak_bytes";

/// The open file.
pub struct Updates {
    file: File,
    path: PathBuf,
    last: Instant,
}

impl Updates {
    /// Opens the file. A run that resumes after update `tried` goes on in it, and what was written after the
    /// checkpoint is dropped.
    pub fn open(path: PathBuf, tried: u64) -> Result<Self, TrainError> {
        let mut kept = format!("{COLUMNS}\n");
        if tried > 0 {
            let old = fs::read_to_string(&path).unwrap_or_default();
            let number = |line: &&str| line.split(',').next().and_then(|n| n.parse::<u64>().ok());
            let earlier = old
                .lines()
                .filter(|line| number(line).is_some_and(|n| n <= tried));
            kept.extend(earlier.flat_map(|line| [line, "\n"]));
        }
        fs::write(&path, kept).map_err(TrainError::io(&path))?;
        let file = OpenOptions::new().append(true).open(&path);
        Ok(Self {
            file: file.map_err(TrainError::io(&path))?,
            path,
            last: Instant::now(),
        })
    }

    /// Starts the clock of the next update: what lies before is no part of it.
    pub fn start(&mut self) {
        self.last = Instant::now();
    }

    /// Appends a line; `epoch` counts from 1.
    pub fn line<M: Trainable>(
        &mut self,
        trainer: &Trainer<M>,
        epoch: usize,
        items: usize,
        update: &Update,
    ) -> Result<(), TrainError> {
        let outcome = match update.verdict {
            Some(Verdict::Apply) => "applied",
            Some(Verdict::SkipLoss) => "loss",
            Some(_) => "overflow",
            None => "empty",
        };
        let bytes = |bytes: Option<Bytes>| bytes.map_or(String::new(), |bytes| bytes.0.to_string());
        let peak = trainer.measurement().map(|measured| measured.peak);
        let line = format!(
            "{},{epoch},{},{},{},{},{outcome},{items},{:.6},{},{}",
            trainer.tried(),
            update.loss,
            update.norm,
            update.lr,
            trainer.scaler().scale(),
            self.last.elapsed().as_secs_f64(),
            bytes(trainer.meter().current()),
            bytes(peak),
        );
        self.last = Instant::now();
        // At once: a run that is killed for its memory is one that people want to look at.
        writeln!(self.file, "{line}").map_err(TrainError::io(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_drops_what_came_after_its_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("updates.csv");
        fs::write(
            &path,
            format!("{COLUMNS}\n1,1,2.0\n2,1,1.5\n3,1,1.0\ncut o"),
        )
        .unwrap();
        drop(Updates::open(path.clone(), 2).unwrap());
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, format!("{COLUMNS}\n1,1,2.0\n2,1,1.5\n"));
        drop(Updates::open(path.clone(), 0).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{COLUMNS}\n"));
    }
}
