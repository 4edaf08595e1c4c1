//! `leanburn quantize`: a trained network in a quarter of the memory, and what that costs.

mod args;
mod measure;
mod subject;
mod text;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use leanburn_train::quantize::Quantizes;
use leanburn_train::{Job, Recipe};

use crate::Wrong;
use crate::print::out;
use subject::Subject;

pub use args::Args;

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    match subject::of(args)? {
        Subject::Images(recipe) => quantize(args, *recipe),
        Subject::Text(recipe) => quantize(args, *recipe),
    }
}

fn quantize<T: Quantizes>(args: &Args, recipe: Recipe<T>) -> Result<ExitCode> {
    let job = Job::open(recipe)?;
    if let Some(path) = &args.from {
        let (network, resident) = job.resident(|| job.load_quantized(path))?;
        let judgement = job.judge(&network)?;
        out(&text::loaded::<T>(args.json, path, resident, &judgement))?;
        return Ok(ExitCode::SUCCESS);
    }
    for path in args.output.iter().chain(&args.safetensors) {
        writable(path)?;
    }
    let result = measure::measure(args, &job)?;
    out(&match args.json {
        true => format!("{}\n", text::json(&job, &result)),
        false => text::text(&job, &result),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a place for a file that is none, before the work and not after it.
fn writable(path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let why = match folder {
        _ if path.is_dir() => "is a folder, and a file is to be written",
        Some(folder) if !folder.is_dir() => "lies in a folder that is not there",
        _ => return Ok(()),
    };
    Err(Wrong(format!("{} {why}", path.display())).into())
}
