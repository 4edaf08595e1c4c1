//! What each checkpoint policy saves, and what it costs: ResNet steps in memory and time.
//!
//!     cargo run --example checkpoint_tradeoff

#[path = "support/steps.rs"]
mod steps;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use leanburn::levers::{CheckpointPolicy, Policy};
use leanburn::memory::{Bytes, CountingAllocator};
use leanburn::models::Depth;
use leanburn::train::{Backend, choose};
use serde_json::{Value, json};
use steps::{Point, Steps, draw};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Take training steps of a ResNet under every checkpoint policy and print kept bytes, peak and time.
#[derive(Parser)]
struct Args {
    /// Images of a step.
    #[arg(long, value_name = "N", default_value_t = 8)]
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
    /// Policies to compare with the first, separated by commas.
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,cheap,every-block,every-block+cheap,every:2+cheap,sqrt,sqrt+cheap"
    )]
    policies: Vec<CheckpointPolicy>,
    /// Timed rounds; each round takes one step of every policy in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    steps: usize,
    /// auto, flex (CPU), wgpu, vulkan or cuda.
    #[arg(long, value_name = "NAME", default_value = "flex")]
    backend: Backend,
    /// Draw the table as an SVG file too.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.batch > 0, "--batch must be at least 1");
    ensure!(args.image_size >= 32, "--image-size must be at least 32");
    let device = choose(args.backend)?.device;
    let policy = Policy::resolve(&args.precision, &device)?;
    let device = device.autodiff();
    let steps = Steps {
        depth: args.depth,
        batch: args.batch,
        image_size: args.image_size,
        policy,
        device,
    };
    let points = steps.measure(&args.policies, args.steps)?;
    if let Some(path) = &args.svg {
        let named = points.iter().map(|point| (point.policy.to_string(), point));
        let named: Vec<_> = named.collect();
        draw(&named, &points[0], args.batch, path).with_context(|| path.display().to_string())?;
        eprintln!("wrote {}", path.display());
    }
    match args.json {
        true => println!("{}", to_json(&args, policy, &points)),
        false => print!("{}", table(&points, args.batch)),
    }
    Ok(())
}

fn table(points: &[Point], batch: usize) -> String {
    let per_image = |bytes: Bytes| bytes.0 as f64 / batch as f64 / 1e6;
    let mut text = format!(
        "{:<20} {:>14} {:>14} {:>7} {:>12} {:>9} {:>7}\n",
        "policy", "kept MB/image", "step MB/image", "memory", "whole peak", "s/step", "time"
    );
    for point in points {
        text += &format!(
            "{:<20} {:>14.1} {:>14.1} {:>6.2}x {:>12} {:>9.3} {:>6.2}x\n",
            point.policy.to_string(),
            per_image(point.kept),
            per_image(point.step),
            point.step.0 as f64 / points[0].step.0 as f64,
            point.peak.to_string(),
            point.seconds,
            point.seconds / points[0].seconds,
        );
    }
    text + "kept: after the forward. step: the most that activations and temporaries take.\n\
            Published for ResNet-50 by MONeT (Shah et al. 2021, https://arxiv.org/abs/2010.14501): \
            0.66x of the memory in 1.03x of the time, 0.33x in 1.12x.\n"
}

fn to_json(args: &Args, policy: Policy, points: &[Point]) -> Value {
    let points = points.iter().map(|point| {
        json!({
            "policy": point.policy.to_string(),
            "peak": point.peak.0,
            "step_peak": point.step.0,
            "kept_after_forward": point.kept.0,
            "seconds_per_step": point.seconds,
        })
    });
    json!({
        "model": args.depth.to_string(),
        "backend": args.backend.to_string(),
        "precision": policy.compute.name(),
        "batch": args.batch,
        "image_size": args.image_size,
        "points": points.collect::<Vec<_>>(),
    })
}
