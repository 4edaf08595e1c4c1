//! What the chain planner makes of a network: for each budget the fastest schedule, predicted and measured.
//!
//!     cargo run --example memory_frontier

#[path = "support/steps.rs"]
mod steps;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use leanburn::levers::{CheckpointPolicy, Policy};
use leanburn::memory::trace::Rates;
use leanburn::memory::{Bytes, CountingAllocator};
use leanburn::models::Depth;
use leanburn::train::levers::Target;
use leanburn::train::plan::{Keep, Planned, Planner};
use leanburn::train::{BackendKind, Images, OptimizerKind, Recipe, choose};
use serde_json::{Value, json};
use steps::{Point, Steps, draw};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Plan the checkpoint schedules of a ResNet from keeping everything down to the leanest, and take steps of each.
#[derive(Parser)]
struct Args {
    /// Images of a step.
    #[arg(long, value_name = "N", default_value_t = 4)]
    batch: usize,
    /// Height and width of the images, in pixels.
    #[arg(long, value_name = "PIXELS", default_value_t = 224)]
    image_size: usize,
    /// ResNet depth: 18, 34, 50, 101 or 152.
    #[arg(long, value_name = "LAYERS", default_value = "50")]
    depth: Depth,
    /// fp32, f16 or bf16.
    #[arg(long, value_name = "POLICY", default_value = "fp32")]
    precision: String,
    /// Schedules of the frontier, spread over its memory.
    #[arg(long, value_name = "N", default_value_t = 8)]
    points: usize,
    /// Timed rounds; each round takes one step of every schedule in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// Count the gradients of parameters too, as a budget does; without it what activations and temporaries take, as
    /// publications do for large batches.
    #[arg(long)]
    gradients: bool,
    /// Draw the frontier as an SVG file too.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// A schedule, as planned and as measured.
struct Line {
    planned: Planned<Images>,
    measured: Point,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.batch > 0, "--batch must be at least 1");
    ensure!(args.points > 1, "--points must be at least 2");
    ensure!(args.image_size >= 32, "--image-size must be at least 32");
    let device = choose(BackendKind::Flex.into())?.device;
    let planned = plan(&args)?;
    let policies: Vec<CheckpointPolicy> = planned
        .iter()
        .map(|planned| planned.recipe.checkpoint.clone())
        .collect();
    let steps = Steps {
        depth: args.depth,
        batch: args.batch,
        image_size: args.image_size,
        policy: Policy::resolve(&args.precision, &device)?,
        device: device.autodiff(),
    };
    let measured = steps.measure(&policies, args.steps)?;
    let lines = planned.into_iter().zip(measured);
    let lines: Vec<Line> = lines
        .map(|(planned, measured)| Line { planned, measured })
        .collect();
    if let Some(path) = &args.svg {
        let points = lines.iter().enumerate();
        let points: Vec<_> = points
            .map(|(n, line)| ((n + 1).to_string(), &line.measured))
            .collect();
        draw(&points, &lines[0].measured, args.batch, path)
            .with_context(|| path.display().to_string())?;
        eprintln!("wrote {}", path.display());
    }
    match args.json {
        true => println!("{}", to_json(&args, &lines)),
        false => print!("{}", table(&lines, args.batch)),
    }
    Ok(())
}

/// The frontier by prediction; the first keeps everything.
fn plan(args: &Args) -> Result<Vec<Planned<Images>>> {
    let mut recipe = Recipe::<Images> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.depth = args.depth;
    recipe.data.image_size = args.image_size;
    recipe.train.batch = args.batch;
    recipe.precision.policy = args.precision.clone();
    recipe.optimizer.name = OptimizerKind::Sgd;
    recipe.optimizer.clip_norm = 0.0;
    let policy = |recipe: &Recipe<Images>| Ok(recipe.precision.policy.parse()?);
    let target = Target {
        facts: &1000,
        backend: BackendKind::Flex.into(),
        policy: &policy,
    };
    let planner = Planner::new(target, Keep::RESULTS, Rates::CPU);
    Ok(planner.frontier(&recipe, args.points, args.gradients)?)
}

fn table(lines: &[Line], batch: usize) -> String {
    let per_image = |bytes: Bytes| bytes.0 as f64 / batch as f64 / 1e6;
    let first = &lines[0];
    let mut text = format!(
        "{:>3}  {:>13} {:>11} {:>11} {:>8} {:>13} {:>13}  {}\n",
        "",
        "step MB/image",
        "predicted",
        "measured",
        "off",
        "time expected",
        "time measured",
        "schedule"
    );
    for (number, line) in lines.iter().enumerate() {
        let (predicted, peak) = (line.planned.prediction.peak, line.measured.peak);
        text += &format!(
            "{:>3}  {:>13.1} {:>11} {:>11} {:>+7.2}% {:>12.2}x {:>12.2}x  {}\n",
            number + 1,
            per_image(line.measured.step),
            predicted.to_string(),
            peak.to_string(),
            100.0 * (predicted.0 as f64 / peak.0 as f64 - 1.0),
            line.planned.seconds / first.planned.seconds,
            line.measured.seconds / first.measured.seconds,
            line.measured.policy,
        );
    }
    text + "step: the most that activations and temporaries take. predicted, measured: the whole peak.\n\
            Published for ResNet-50 by MONeT (Shah et al. 2021, https://arxiv.org/abs/2010.14501): \
            54 MB per image in 1.03x of the time, 27 MB in 1.12x.\n"
}

fn to_json(args: &Args, lines: &[Line]) -> Value {
    let points = lines.iter().map(|line| {
        json!({
            "policy": line.measured.policy.to_string(),
            "peak": line.measured.peak.0,
            "predicted_peak": line.planned.prediction.peak.0,
            "step_peak": line.measured.step.0,
            "kept_after_forward": line.measured.kept.0,
            "seconds_expected": line.planned.seconds,
            "seconds_per_step": line.measured.seconds,
        })
    });
    json!({
        "model": args.depth.to_string(),
        "backend": "flex",
        "precision": args.precision,
        "batch": args.batch,
        "image_size": args.image_size,
        "points": points.collect::<Vec<_>>(),
    })
}
