//! What a training run left in its folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use leanburn_memory::Measurement;
use leanburn_memory::json::sides;
use serde::Deserialize;
use serde_json::Value;

use crate::Wrong;

/// A run's folder, read.
pub struct Run {
    /// `recipe.toml`
    pub recipe: String,
    /// `updates.csv`
    pub updates: Vec<Update>,
    /// `metrics.csv`: its columns, and a line per epoch.
    pub epochs: Epochs,
    /// What could not be read, and why.
    pub damaged: Vec<String>,
    /// `report.json`; not there where the run did not come to its end.
    pub report: Option<Value>,
}

/// One line of `updates.csv`.
#[derive(Clone, Debug, Deserialize)]
pub struct Update {
    pub update: f64,
    pub loss: f64,
    pub norm: f64,
    pub loss_scale: f64,
    pub outcome: String,
    pub items: f64,
    pub seconds: f64,
    pub in_use_bytes: Option<u64>,
    pub peak_bytes: Option<u64>,
}

/// `metrics.csv` as it stands.
#[derive(Clone, Debug, Default)]
pub struct Epochs {
    pub columns: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

impl Run {
    /// Reads a folder; one without `updates.csv` is none of a run.
    pub fn open(folder: &Path) -> Result<Self> {
        let updates = folder.join("updates.csv");
        let none = |why: &str| Wrong(format!("{}: {why}", folder.display()));
        if !folder.is_dir() {
            return Err(none("no such folder").into());
        }
        if !updates.is_file() {
            return Err(none("no updates.csv in it, so no training run wrote there").into());
        }
        let mut reader = csv::Reader::from_path(&updates).context("updates.csv")?;
        let lines: Vec<csv::Result<Update>> = reader.deserialize().collect();
        let count = lines.len();
        let updates: Vec<Update> = lines.into_iter().filter_map(Result::ok).collect();
        // A run that was killed may have left half a line at the end.
        if updates.len() + 1 < count {
            return Err(none("its updates.csv is damaged, or none of leanburn's").into());
        }
        let (report, epochs) = (folder.join("report.json"), folder.join("metrics.csv"));
        let (report, epochs) = (read_report(&report), Epochs::open(&epochs));
        let errors = [report.as_ref().err(), epochs.as_ref().err()];
        let damaged = errors
            .into_iter()
            .flatten()
            .map(|error| format!("{error:#}"));
        Ok(Self {
            recipe: fs::read_to_string(folder.join("recipe.toml")).unwrap_or_default(),
            updates,
            damaged: damaged.collect(),
            epochs: epochs.unwrap_or_default(),
            report: report.unwrap_or_default(),
        })
    }

    /// Predicted and measured, where the run came to its end.
    pub fn memory(&self) -> [Option<Measurement>; 2] {
        self.report
            .as_ref()
            .map_or([None, None], |report| sides(&report["memory"]))
    }
}

/// `None` where there is none.
fn read_report(path: &Path) -> Result<Option<Value>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).context("report.json cannot be read")?;
    let report: Value = serde_json::from_str(&text).context("report.json is damaged")?;
    anyhow::ensure!(report.is_object(), "report.json is none of leanburn's");
    Ok(Some(report))
}

impl Epochs {
    fn open(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Ok(Self::default());
        }
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_path(path)
            .context("metrics.csv")?;
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns = cells(reader.headers().context("metrics.csv is damaged")?);
        let lines = reader.records().filter_map(Result::ok);
        let lines = lines.map(|line| cells(&line)).collect();
        Ok(Self { columns, lines })
    }

    /// The numbers of a column, with the update that each stands at.
    pub fn over_updates(&self, column: &str) -> Vec<(f64, f64)> {
        let at = |name: &str| self.columns.iter().position(|column| column == name);
        let (Some(update), Some(value)) = (at("update"), at(column)) else {
            return Vec::new();
        };
        let number = |line: &Vec<String>, at: usize| line.get(at)?.parse().ok();
        let points = self.lines.iter();
        points
            .filter_map(|line| Some((number(line, update)?, number(line, value)?)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_killed_is_read_as_far_as_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let error = Run::open(folder.path()).err().unwrap().to_string();
        assert!(error.contains("no training run"), "{error}");
        fs::write(
            folder.path().join("updates.csv"),
            "update,epoch,loss,norm,lr,loss_scale,outcome,items,seconds,in_use_bytes,peak_bytes\n\
             1,1,2.5,1,0.1,1,applied,64,0.5,100,200\n2,1,NaN,NaN,0,1,overflow,64,0.5,,\n3,1,2.",
        )
        .unwrap();
        fs::write(
            folder.path().join("metrics.csv"),
            "epoch,update,val_loss\n1,2,2.25\n",
        )
        .unwrap();
        let run = Run::open(folder.path()).unwrap();
        assert_eq!(run.updates.len(), 2);
        assert_eq!(run.updates[0].in_use_bytes, Some(100));
        assert!(run.updates[1].loss.is_nan() && run.updates[1].peak_bytes.is_none());
        assert_eq!(run.epochs.over_updates("val_loss"), [(2.0, 2.25)]);
        assert_eq!(run.epochs.over_updates("accuracy"), []);
        assert_eq!(run.memory(), [None, None]);
    }
}
