//! The `leanburn` program.

mod advise;
mod budget;
mod child;
mod compare;
mod devices;
mod estimate;
mod gpus;
mod page;
mod plan;
mod print;
mod probe;
mod quantize;
mod report;
mod step;
mod subject;
mod timeline;
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

// Counts the heap, for the steps that a prediction has to measure.
#[global_allocator]
static ALLOC: leanburn_memory::CountingAllocator = leanburn_memory::CountingAllocator::system();

/// Trains in the memory that there is: what a run needs before it starts, the recipe that fits, what it took, on which
/// backend, and its network in a quarter of the memory.
#[derive(Parser)]
#[command(
    name = "leanburn",
    version,
    after_help = "Exit codes: 0 done, 1 it failed (for estimate with a memory, plan and advise: nothing fits; for compare: a backend failed), 2 wrong use."
)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Predict the memory of a training step, row by row, without running it and without the GPU
    Estimate(Box<estimate::Args>),
    /// Train a recipe: ResNets on images, Transformers on text
    Train(Box<train::Args>),
    /// Find the cheapest recipe that fits into a memory, or the largest batch
    Plan(Box<plan::Args>),
    /// Run the same updates on several backends, and set memory, time and losses side by side
    Compare(Box<compare::Args>),
    /// Run a few updates on one backend, and print what they took
    Probe(Box<probe::Args>),
    /// Store a trained network as int8, and print what that costs, layer by layer
    Quantize(Box<quantize::Args>),
    /// Make a page of a training run: memory, loss, throughput, predicted against measured
    Report(report::Args),
    /// Say which GPUs and cloud machines run a recipe, with which levers, how fast at best, and at what price
    Advise(Box<advise::Args>),
    /// List the GPUs of the catalogue, and the cloud machines that have them
    Gpus(gpus::Args),
    /// List the devices that there are, and the backends that this program was built without
    Devices(devices::Args),
}

/// A flag that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Wrong(String);

fn main() -> ExitCode {
    let result = match Program::parse().command {
        Command::Estimate(args) => estimate::run(&args),
        Command::Train(args) => train::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Gpus(args) => gpus::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Quantize(args) => quantize::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Devices(args) => devices::run(&args),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(if is_wrong_use(&error) { 2 } else { 1 })
        }
    }
}

fn is_wrong_use(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.is::<Wrong>()
            || cause.is::<leanburn_memory::CatalogueError>()
            || cause.is::<leanburn_memory::formulas::FormulaError>()
            || cause
                .downcast_ref::<leanburn_train::TrainError>()
                .is_some_and(leanburn_train::TrainError::is_wrong_use)
    })
}
