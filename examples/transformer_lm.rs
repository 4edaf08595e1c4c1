//! Trains a Transformer on text without the tensors that grow with context x context and tokens x
//! vocabulary, and accounts for every byte.
//!
//!     cargo run --example transformer_lm -- --preset tiny --context 256

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use leanburn::data::tokens::{BuildReport, InvalidUtf8, Tokenizer, build};
use leanburn::data::{DataError, TextError};
use leanburn::memory::{Bytes, CountingAllocator};
use leanburn::models::transformer::gpt::Generate;
use leanburn::train::text::TextModel;
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
    /// Make tokens of this text first (.gz too), into tokens.bin in the run's folder, and train on them:
    /// bytes, or those of --tokenizer.
    #[arg(long, value_name = "FILE", conflicts_with = "data")]
    text_file: Option<PathBuf>,
    /// Replace what is not UTF-8 in --text-file instead of stopping there; with --tokenizer only.
    #[arg(long)]
    replace_invalid: bool,
    /// What the trained decoder goes on from.
    #[arg(long, value_name = "TEXT", default_value = "hacker: n. ")]
    prompt: String,
    /// Tokens that it writes.
    #[arg(long, value_name = "N", default_value_t = 300)]
    sample: usize,
    /// 0 takes the likeliest token, 1 samples as the model believes.
    #[arg(long, value_name = "T", default_value_t = 0.7)]
    temperature: f64,
    /// Most bytes of keys and values while it writes, such as 4MiB; the window is shorter then.
    #[arg(long, value_name = "BYTES")]
    cache: Option<Bytes>,
}

fn main() -> ExitCode {
    match run(&mut Args::parse()) {
        Ok(report) if report.interrupted => ExitCode::from(130),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => exit_code(Err(error)),
    }
}

fn run(args: &mut Args) -> Result<Report<Text>, TrainError> {
    if let Some(text) = &args.text_file {
        let out = args.run.output().join("tokens.bin");
        std::fs::create_dir_all(args.run.output()).map_err(TrainError::io(&out))?;
        let report = tokens(args, text, &out).map_err(DataError::from)?;
        eprintln!(
            "{}: {} tokens of {} bytes",
            out.display(),
            report.tokens,
            report.bytes
        );
        args.text.data = Some(out.display().to_string());
    }
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
    if !report.interrupted {
        write(args, &job, &model)?;
    }
    Ok(report)
}

fn tokens(args: &Args, text: &Path, out: &Path) -> Result<BuildReport, TextError> {
    let tokenizer = match &args.text.tokenizer {
        Some(path) => Tokenizer::open(path)?,
        None => Tokenizer::Bytes,
    };
    let invalid = match args.replace_invalid {
        true => InvalidUtf8::Replace,
        false => InvalidUtf8::Refuse,
    };
    build(text, &tokenizer, invalid, out)
}

/// Lets the decoder write on from the prompt.
fn write(args: &Args, job: &Job<Text>, model: &TextModel) -> Result<(), TrainError> {
    let (Some(gpt), tokenizer) = (model.gpt(), job.loaders.tokenizer()) else {
        return Ok(());
    };
    let prompt = tokenizer
        .encode(args.prompt.as_bytes())
        .map_err(DataError::from)?;
    let prompt: Vec<i64> = prompt.into_iter().map(i64::from).collect();
    let generate = Generate {
        tokens: args.sample,
        temperature: args.temperature,
        cache: args.cache,
        seed: job.recipe.train.seed,
        ..Generate::default()
    };
    let written = generate
        .run(gpt, &prompt)
        .map_err(|error| TrainError::Recipe(error.to_string()))?;
    let written: Vec<u32> = written.into_iter().map(|token| token as u32).collect();
    let written = tokenizer.decode(&written).map_err(DataError::from)?;
    println!("\n{}{}", args.prompt, String::from_utf8_lossy(&written));
    Ok(())
}
