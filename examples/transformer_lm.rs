//! Trains a Transformer on text without the tensors that grow with context x context and tokens x
//! vocabulary, and accounts for every byte.
//!
//!     cargo run --example transformer_lm -- --preset tiny --context 256

use std::process::ExitCode;

use clap::Parser;
use leanburn::memory::CountingAllocator;
use leanburn::train::text::{SourceArgs, WritingArgs};
use leanburn::train::{Job, Report, RunArgs, Text, TextArgs, TrainError, exit_code, interrupt};

// Counts the heap, which is where the CPU backend keeps its tensors.
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Train a Transformer on text, print its memory table, and let it write.
///
/// Without flags: a small Llama on the bytes of the Jargon File, for about four minutes on two CPU cores.
#[derive(Parser)]
#[command(
    after_help = "Exit codes: 0 done, 1 the run failed, 2 wrong use, 130 interrupted (and saved)."
)]
struct Args {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    text: TextArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    writing: WritingArgs,
}

fn main() -> ExitCode {
    match run(&mut Args::parse()) {
        Ok(report) if report.interrupted => ExitCode::from(130),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => exit_code(Err(error)),
    }
}

fn run(args: &mut Args) -> Result<Report<Text>, TrainError> {
    args.source.prepare(&mut args.run, &args.text)?;
    let (recipe, resumed) = args.run.start(&args.text)?;
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
    print!("{}", report.memory_table(None));
    if !report.interrupted
        && let Some(text) = args.writing.write(&job, &model)?
    {
        println!("\n{text}");
    }
    Ok(report)
}
