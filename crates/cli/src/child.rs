//! One backend in a process of its own.

mod failure;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use leanburn_train::Backend;
use serde::Deserialize;
use serde_json::Value;

pub use failure::Failure;

/// What to run.
pub struct Child<'a> {
    pub recipe: &'a Path,
    pub folder: &'a Path,
    pub backend: Backend,
    /// Updates.
    pub steps: u64,
    /// Ends it after so long.
    pub limit: Option<Duration>,
    /// Start also what is predicted not to fit.
    pub force: bool,
}

/// What `leanburn probe --json` prints.
#[derive(Clone, Debug, Deserialize)]
pub struct Ran {
    pub device: Option<String>,
    pub driver: Option<String>,
    pub precision: String,
    pub skipped_steps: u64,
    /// `None` where a loss was no number.
    pub losses: Vec<Option<f64>>,
    pub seconds: Vec<f64>,
    pub seconds_per_step: Option<f64>,
    pub memory: Value,
    pub reserved: Option<u64>,
    pub points: Vec<Point>,
}

/// Bytes at a mark of the step.
#[derive(Clone, Debug, Deserialize)]
pub struct Point {
    pub at: String,
    pub live: u64,
    pub peak: u64,
}

impl Child<'_> {
    /// Runs it to its end, or to the limit. An error says that it could not even be started.
    pub fn run(&self) -> Result<Result<Ran, Failure>> {
        let [stdout, stderr, trail] = ["stdout", "stderr", "trail"].map(|name| self.file(name));
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["probe", "--json", "--backend", &self.backend.to_string()])
            .args(["--steps", &self.steps.to_string()])
            .arg("--config")
            .arg(self.recipe)
            .arg("--trail")
            .arg(&trail)
            // Its end tells the child that nobody waits any more.
            .stdin(Stdio::piped())
            // Files, because nobody reads a pipe while waiting.
            .stdout(File::create(&stdout).context("stdout of the backend")?)
            .stderr(File::create(&stderr).context("stderr of the backend")?);
        if self.force {
            command.arg("--force");
        }
        let status = wait(command, self.limit)?;
        let said = fs::read(&stderr).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let trail = fs::read_to_string(&trail).unwrap_or_default();
        let Some(status) = status.filter(ExitStatus::success) else {
            return Ok(Err(Failure::of(status, self.limit, &said, &trail)));
        };
        let text = fs::read_to_string(&stdout).unwrap_or_default();
        Ok(serde_json::from_str(&text).map_err(|error| Failure {
            reason: format!("its result does not parse ({status}): {error}"),
            ..Failure::default()
        }))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// `None` where the limit came first.
fn wait(mut command: Command, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut child = command.spawn().context("a process for the backend")?;
    while limit.is_none_or(|limit| start.elapsed() < limit) {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}
