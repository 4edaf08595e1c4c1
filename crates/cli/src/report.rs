//! `leanburn report`: a training run as a page.

mod page;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::print::write;
use run::Run;

/// Reads what a run left in its folder, also one that was interrupted, and writes one HTML file that works
/// offline: memory over the updates, loss, throughput, skipped updates, predicted against measured.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folder of the run, which is what --output of the training named.
    #[arg(value_name = "RUN_DIR")]
    run: PathBuf,
    /// Where to write the page [default: report.html in the folder].
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let run = Run::open(&args.run)?;
    let html = args
        .html
        .clone()
        .unwrap_or_else(|| args.run.join("report.html"));
    write(
        &html,
        &page::page(&args.run.display().to_string(), &run).html(),
    )?;
    Ok(ExitCode::SUCCESS)
}
