//! Trains a ResNet in mixed precision and accounts for every byte.
//!
//!     cargo run --example resnet_amp -- --batch 64

use std::process::ExitCode;

use clap::Parser;
use leanburn::memory::CountingAllocator;
use leanburn::train::{ImageArgs, Images, Job, Report, RunArgs, TrainError, exit_code, interrupt};

// Counts the heap, which is where the CPU backend keeps its tensors.
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Train a ResNet in mixed precision, with f32 master weights, and print its memory table.
///
/// Without flags: ResNet-50 on the digits that ship with the repository, for less than two minutes on
/// two CPU cores.
#[derive(Parser)]
#[command(
    after_help = "Exit codes: 0 done, 1 the run failed, 2 wrong use, 130 interrupted (and saved)."
)]
struct Args {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    images: ImageArgs,
    /// After the run, take two updates in f32 and print their memory beside.
    #[arg(long)]
    compare_fp32: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(report) if report.interrupted => ExitCode::from(130),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => exit_code(Err(error)),
    }
}

fn run(args: &Args) -> Result<Report<Images>, TrainError> {
    let (recipe, resumed) = args.run.start(&args.images)?;
    let mut job = Job::open(recipe)?;
    job.force = args.run.force;
    interrupt::install();
    let output = args.run.output();
    let (report, model) = job.run(&output, resumed)?;
    model.save_weights(&output.join("model.safetensors"))?;

    if args.run.json {
        println!("{}", report.to_json());
        return Ok(report);
    }
    println!("{}", report.summary());
    let compare = args.compare_fp32 && !report.interrupted;
    let fp32 = compare.then(|| job.measure_in_f32()).transpose()?;
    print!("{}", report.memory_table(fp32.as_ref()));
    Ok(report)
}
