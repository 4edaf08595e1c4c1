//! Trains a ResNet on the digits, stores it as int8 by every method, and prints what each is worth.
//!
//!     cargo run --example quantize_resnet

use std::process::ExitCode;

use clap::Parser;
use leanburn::compress::{Method, Settings};
use leanburn::levers::int8::Arithmetic;
use leanburn::memory::CountingAllocator;
use leanburn::memory::table::align;
use leanburn::models::ResNet;
use leanburn::train::quantize::{Judgement, Side, side_by_side};
use leanburn::train::{ImageArgs, Images, Job, RunArgs, TrainError, exit_code, interrupt};
use serde_json::{Value, json};

// Counts the heap, which is where the CPU backend keeps its tensors.
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Train a ResNet (or load one), quantize its weights and inputs by every calibration method, and print accuracy,
/// memory, disk and time against f32.
#[derive(Parser)]
struct Args {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    images: ImageArgs,
    /// Training images that the ranges of inputs are chosen from.
    #[arg(long, value_name = "N", default_value_t = 512)]
    calibrate: usize,
    /// Split the digits once more for each of these seeds, train on each split, and quantize by percentile.
    #[arg(long, value_name = "SEED", value_delimiter = ',')]
    splits: Vec<u64>,
}

/// One network, before and after.
struct Outcome {
    float: Side,
    int8: Side,
    /// Of every method: its judgement, and the share of answers that stayed.
    methods: Vec<(Method, Judgement, f64)>,
}

fn main() -> ExitCode {
    exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), TrainError> {
    let (recipe, _) = args.run.start(&args.images)?;
    interrupt::install();
    let mut job = Job::open(recipe)?;
    job.force = args.run.force;
    let outcome = quantized(args, &job, &Method::ALL)?;
    let arithmetic = Arithmetic::of(&job.inference()).name();
    let mut splits = Vec::new();
    for seed in &args.splits {
        let mut recipe = job.recipe.clone();
        recipe.data.split_seed = Some(*seed);
        recipe.validate()?;
        let mut other = Job::open(recipe)?;
        other.force = args.run.force;
        let outcome = quantized(args, &other, &[Method::ALL[2]])?;
        splits.push((*seed, outcome));
    }
    match args.run.json {
        true => println!("{}", to_json(&outcome, arithmetic, &splits)),
        false => print!("{}", text(&outcome, arithmetic, &splits)),
    }
    Ok(())
}

/// The network of the weights that the recipe names, or trained by it, in f32.
fn trained(args: &Args, job: &Job<Images>) -> Result<ResNet, TrainError> {
    match job.recipe.model.weights {
        Some(_) => job.trained(),
        None => {
            let output = args.run.output();
            let (_, model) = job.run(&output, None)?;
            model.save_weights(&output.join("model.safetensors"))?;
            job.in_f32(model)
        }
    }
}

fn quantized(args: &Args, job: &Job<Images>, methods: &[Method]) -> Result<Outcome, TrainError> {
    let folder = tempfile::tempdir().map_err(TrainError::io("temporary folder".as_ref()))?;
    let trained = trained(args, job)?;
    // A copy of its own, so that nothing but its tensors is counted.
    let (network, resident) = job.resident(|| job.in_f32(trained.clone()))?;
    drop(trained);
    let mut float = job.float_side(&network, resident, &folder.path().join("f32.safetensors"))?;
    let session = job.calibrate(network, args.calibrate, None)?;
    let mut judged = Vec::new();
    let mut int8 = None;
    for method in methods {
        let settings = Settings {
            method: Some(*method),
            ..Settings::default()
        };
        let (quantized, resident) = job.resident(|| session.quantize(&settings))?;
        eprintln!("judging {method}");
        let judgement = match method {
            Method::Percentile(_) => {
                let path = folder.path().join("int8.bpk");
                let mut side = job.int8_side(&quantized, resident, &path)?;
                let seconds = job.time([&session.float, &quantized.model])?;
                [float.seconds, side.seconds] = seconds.map(Some);
                int8.insert(side).judgement.clone()
            }
            _ => job.judge(&quantized.model)?,
        };
        let agreement = judgement.agreement(&float.judgement).unwrap_or_default();
        judged.push((*method, judgement, agreement));
    }
    Ok(Outcome {
        float,
        int8: int8.expect("percentile is among the methods"),
        methods: judged,
    })
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn text(outcome: &Outcome, arithmetic: &str, splits: &[(u64, Outcome)]) -> String {
    let mut lines = vec![
        ["inputs by", "accuracy", "change", "same answers"]
            .map(String::from)
            .to_vec(),
    ];
    let mut tell = |of: &Outcome, name: &dyn Fn(Method, f64) -> String| {
        let before = of.float.judgement.score.accuracy();
        for (method, judgement, agreement) in &of.methods {
            let now = judgement.score.accuracy();
            let change = format!("{:+.2}", 100.0 * (now - before));
            lines.push(vec![
                name(*method, before),
                percent(now),
                change,
                percent(*agreement),
            ]);
        }
    };
    tell(outcome, &|method, _| method.to_string());
    for (seed, other) in splits {
        tell(other, &|_, before| {
            format!("split {seed} ({})", percent(before))
        });
    }
    let sides = side_by_side::<Images>(&outcome.float, &outcome.int8);
    format!(
        "{arithmetic} arithmetic\n\n{}\n{}",
        align(&sides),
        align(&lines)
    )
}

fn to_json(outcome: &Outcome, arithmetic: &str, splits: &[(u64, Outcome)]) -> Value {
    let methods = |outcome: &Outcome| -> Vec<Value> {
        let all = outcome.methods.iter().map(|(method, judgement, agreement)| {
            let accuracy = judgement.score.accuracy();
            json!({ "method": method.to_string(), "accuracy": accuracy, "agreement": agreement })
        });
        all.collect()
    };
    let splits = splits.iter().map(|(seed, outcome)| {
        let accuracy = outcome.float.judgement.score.accuracy();
        json!({ "seed": seed, "f32": { "accuracy": accuracy }, "methods": methods(outcome) })
    });
    json!({
        "arithmetic": arithmetic,
        "f32": outcome.float.to_json::<Images>(),
        "int8": outcome.int8.to_json::<Images>(),
        "methods": methods(outcome),
        "splits": splits.collect::<Vec<_>>(),
    })
}
