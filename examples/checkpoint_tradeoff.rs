//! What each checkpoint policy saves, and what it costs: ResNet steps in memory and time.
//!
//!     cargo run --example checkpoint_tradeoff

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use burn::tensor::Device;
use clap::Parser;
use leanburn::data::{Batch, HostBatch};
use leanburn::levers::{CheckpointPolicy, Offload, Policy};
use leanburn::memory::{Bytes, CountingAllocator, Measurement, Row};
use leanburn::models::{Depth, ResNet, ResNetConfig};
use leanburn::train::{Backend, Settings, Trainable, Trainer, choose};
use plotters::prelude::*;
use serde_json::{Value, json};

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

/// A line of the table.
struct Point {
    policy: CheckpointPolicy,
    kept: Bytes,
    /// Above parameters, buffers, gradients, optimizer state and inputs.
    step: Bytes,
    peak: Bytes,
    seconds: f64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    ensure!(args.batch > 0, "--batch must be at least 1");
    ensure!(args.image_size >= 32, "--image-size must be at least 32");
    let device = choose(args.backend)?.device;
    let policy = Policy::resolve(&args.precision, &device)?;
    let device = device.autodiff();
    let points = measure(&args, policy, &device)?;
    if let Some(path) = &args.svg {
        draw(&points, args.batch, path).with_context(|| path.display().to_string())?;
        eprintln!("wrote {}", path.display());
    }
    match args.json {
        true => println!("{}", to_json(&args, policy, &points)),
        false => print!("{}", table(&points, args.batch)),
    }
    Ok(())
}

fn measure(args: &Args, policy: Policy, device: &Device) -> Result<Vec<Point>> {
    let config = ResNetConfig::new(args.depth, 1000);
    let model = |checkpoint: &CheckpointPolicy| {
        let model = config.init(device).with_policy(policy);
        model.with_checkpoint(checkpoint.clone(), Offload::None)
    };
    let batch = batch(args, device);
    let mut points = Vec::new();
    for policy in &args.policies {
        let measured = step_memory(|| model(policy), &batch, device)?;
        points.push(Point::new(policy.clone(), &measured));
    }
    // In turn, so that the machine's moods hit all policies alike; the first round warms up.
    let models: Vec<ResNet> = args.policies.iter().map(model).collect();
    let mut seconds = vec![Vec::new(); models.len()];
    for round in 0..=args.steps {
        for (model, seconds) in models.iter().zip(&mut seconds) {
            let start = Instant::now();
            drop(model.loss(batch.clone()).backward());
            device.sync()?;
            if round > 0 {
                seconds.push(start.elapsed().as_secs_f64());
            }
        }
        eprintln!("round {round} of {}", args.steps);
    }
    for (point, mut seconds) in points.iter_mut().zip(seconds) {
        seconds.sort_by(f64::total_cmp);
        point.seconds = seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN);
    }
    Ok(points)
}

/// The second of two whole training steps: the first allocates what the second keeps.
fn step_memory(
    model: impl FnOnce() -> ResNet,
    batch: &Batch,
    device: &Device,
) -> Result<Measurement> {
    let mut trainer = Trainer::bare(Settings::plain(batch.len()), device, model)?;
    for _ in 0..2 {
        trainer.micro_step(batch.clone());
        trainer.update()?;
    }
    let measured = trainer.measurement().cloned();
    measured.context("this backend does not report its memory")
}

fn batch(args: &Args, device: &Device) -> Batch {
    let (size, pixels) = (args.image_size, args.batch * 3 * args.image_size.pow(2));
    HostBatch {
        pixels: (0..pixels).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect(),
        labels: (0..args.batch as i64).map(|i| i % 1000).collect(),
        image_size: size,
        visited: args.batch,
    }
    .into_device(device)
}

impl Point {
    fn new(policy: CheckpointPolicy, measured: &Measurement) -> Self {
        let row = |row| measured.rows.get(row).unwrap_or_default().0;
        Self {
            policy,
            kept: measured.kept_after_forward.unwrap_or_default(),
            step: Bytes(row(Row::Activations) + row(Row::Temporaries)),
            peak: measured.peak,
            seconds: f64::NAN,
        }
    }
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
    text + "kept: after the forward. step: the peak, less parameters, buffers, gradients, optimizer \
            state and inputs.\n\
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

/// Memory to the right, time upwards; a policy further down and left is better.
fn draw(points: &[Point], batch: usize, path: &Path) -> Result<()> {
    let at = |point: &Point| {
        let time = point.seconds / points[0].seconds;
        (point.step.0 as f64 / batch as f64 / 1e6, time)
    };
    let largest = |of: fn((f64, f64)) -> f64| points.iter().map(|p| of(at(p))).fold(0.0, f64::max);
    let (memory, time) = (largest(|p| p.0) * 1.2, largest(|p| p.1) * 1.05);
    let area = SVGBackend::new(path, (720, 440)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..memory, 0.95..time.max(1.1))?;
    chart
        .configure_mesh()
        .x_desc("activations and temporaries at the peak, MB per image")
        .y_desc("time per step, relative to the first policy")
        .draw()?;
    chart.draw_series(points.iter().map(|point| {
        let label = Text::new(point.policy.to_string(), (8, -6), ("sans-serif", 13));
        EmptyElement::at(at(point)) + Circle::new((0, 0), 4, BLACK.filled()) + label
    }))?;
    Ok(area.present()?)
}
