//! Time and memory of one ResNet-50 step on the CPU, as ratios within one machine.
//!
//!     cargo bench --profile dev --bench step -- compare          # each in a process of its own
//!     cargo bench --profile dev --bench step -- loop             # our loop against a hand-written one
//!     cargo bench --profile dev --bench step -- process plain    # one JSON line, for benches/peers/

#[path = "support/plain.rs"]
mod plain;

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use burn::module::Module;
use burn::nn::loss::CrossEntropyLossConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, Distribution, Int, Tensor};
use clap::{Parser, Subcommand, ValueEnum};
use leanburn::data::Batch;
use leanburn::levers::{Policy, Precision};
use leanburn::memory::{Bytes, CountingAllocator, heap};
use leanburn::models::{Depth, ResNet, ResNetConfig};
use leanburn::train::{Settings, Trainer};
use serde_json::{Value, json};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Measure one training step of ResNet-50 with SGD and momentum on the CPU.
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
    /// Images in the batch.
    #[arg(long, global = true, default_value_t = 8)]
    batch: usize,
    /// Height and width in pixels.
    #[arg(long, global = true, default_value_t = 224)]
    size: usize,
    /// Steps that are timed, after one that is not.
    #[arg(long, global = true, default_value_t = 3)]
    steps: usize,
    // `cargo bench` passes this.
    #[arg(long, hide = true, global = true)]
    bench: bool,
}

#[derive(Subcommand, Clone, Copy)]
enum What {
    /// All modes, each in its own process, with ratios to plain Burn.
    Compare,
    /// Our loop and a hand-written one over the same model, alternating.
    Loop,
    /// One mode; prints a line of JSON.
    Process { mode: Mode },
}

#[derive(Clone, Copy, ValueEnum, Debug, PartialEq)]
enum Mode {
    /// The network written in plain Burn.
    Plain,
    /// The same with Burn's own op-by-op checkpointing.
    Balanced,
    /// leanburn in f32.
    Fp32,
    /// leanburn in f16.
    F16,
    /// leanburn in bf16.
    Bf16,
}

fn main() -> Result<()> {
    let args = Args::parse();
    match args.what {
        What::Process { mode } => println!("{}", process(&args, mode)),
        What::Compare => compare(&args)?,
        What::Loop => alternate(&args)?,
    }
    Ok(())
}

fn sgd() -> ModuleOptimizer {
    let momentum = MomentumConfig::new().with_momentum(0.9).with_dampening(0.0);
    SgdConfig::new().with_momentum(Some(momentum)).init()
}

fn batch(args: &Args, device: &Device) -> Batch {
    let shape = [args.batch, 3, args.size, args.size];
    Batch {
        images: Tensor::random(shape, Distribution::Normal(0.0, 1.0), device),
        targets: Tensor::<1, Int>::zeros([args.batch], device),
    }
}

/// The loop that anyone would write.
fn by_hand<M: Module>(
    model: M,
    optimizer: &mut ModuleOptimizer,
    batch: Batch,
    forward: impl Fn(&M, Tensor<4>) -> Tensor<2>,
) -> M {
    let logits = forward(&model, batch.images);
    let criterion = CrossEntropyLossConfig::new().init(&logits.device());
    let loss = criterion.forward(logits, batch.targets);
    let gradients = GradientsParams::from_grads(loss.backward(), &model);
    let model = optimizer.step(0.01, model, gradients);
    let _: f32 = loss.into_scalar();
    model
}

/// Seconds of the fastest timed step, and bytes that a forward keeps for the backward.
fn time_by_hand<M: Module>(
    steps: usize,
    model: M,
    optimizer: &mut ModuleOptimizer,
    batch: &Batch,
    forward: impl Fn(&M, Tensor<4>) -> Tensor<2>,
) -> (f64, u64) {
    let mut model = by_hand(model, optimizer, batch.clone(), &forward);
    let mut fastest = f64::INFINITY;
    for _ in 0..steps.max(1) {
        let start = Instant::now();
        model = by_hand(model, optimizer, batch.clone(), &forward);
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    let before = heap::current();
    let logits = forward(&model, batch.images.clone());
    (
        fastest,
        heap::current() - before - logits.shape().num_elements() as u64 * 4,
    )
}

fn process(args: &Args, mode: Mode) -> Value {
    let device = Device::flex().autodiff();
    let device = match mode {
        Mode::Balanced => device.gradient_checkpointing(),
        _ => device,
    };
    let batch = batch(args, &device);
    let mut optimizer = sgd();
    let (seconds, kept) = match mode {
        Mode::Plain | Mode::Balanced => {
            let model = plain::ResNet50::new(1000, &device);
            let forward = plain::ResNet50::forward;
            time_by_hand(args.steps, model, &mut optimizer, &batch, forward)
        }
        _ => {
            let policy = Policy::computing(match mode {
                Mode::F16 => Precision::F16,
                Mode::Bf16 => Precision::Bf16,
                _ => Precision::F32,
            });
            let model = ResNetConfig::new(Depth::R50, 1000).init(&device);
            let model = model.with_policy(policy);
            time_by_hand(args.steps, model, &mut optimizer, &batch, ResNet::forward)
        }
    };
    json!({
        "mode": format!("{mode:?}").to_lowercase(),
        "batch": args.batch,
        "image_size": args.size,
        "seconds": seconds,
        "kept_bytes_per_image": kept / args.batch as u64,
        "heap_peak_bytes": heap::peak(),
        "process_peak_mib": peak_rss_mib(),
    })
}

/// Highest resident size of this process; `None` where the system does not say.
fn peak_rss_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim()
        .split(' ')
        .next()?
        .parse::<u64>()
        .ok()
        .map(|kib| kib / 1024)
}

fn compare(args: &Args) -> Result<()> {
    let mut base = None;
    println!(
        "{:<10} {:>10} {:>7} {:>14} {:>14} {:>14}",
        "mode", "s/step", "ratio", "kept MB/image", "heap peak MiB", "process MiB"
    );
    for mode in ["plain", "balanced", "fp32", "f16", "bf16"] {
        let output = Command::new(std::env::current_exe()?)
            .args(["process", mode])
            .args([
                "--batch",
                &args.batch.to_string(),
                "--size",
                &args.size.to_string(),
            ])
            .args(["--steps", &args.steps.to_string()])
            .output()?;
        let line: Value =
            serde_json::from_slice(&output.stdout).context("the child printed no JSON")?;
        let seconds = line["seconds"].as_f64().context("no seconds")?;
        println!(
            "{mode:<10} {seconds:>10.2} {:>6.2}x {:>14.1} {:>14} {:>14}",
            seconds / *base.get_or_insert(seconds),
            line["kept_bytes_per_image"].as_f64().unwrap_or(0.0) / 1e6,
            line["heap_peak_bytes"].as_u64().unwrap_or(0) >> 20,
            line["process_peak_mib"],
        );
    }
    Ok(())
}

/// Both loops over equal models, step by step in turn, so that the machine's moods hit both.
fn alternate(args: &Args) -> Result<()> {
    let device = Device::flex().autodiff();
    let batch = batch(args, &device);
    let config = ResNetConfig::new(Depth::R50, 1000);
    let mut optimizer = sgd();
    let mut hand = Some(config.init(&device));
    let settings = Settings::plain(args.batch);
    let mut ours = Trainer::bare(settings, &device, || config.init(&device))?;

    let (mut ratios, mut peaks) = (Vec::new(), (0, 0));
    for step in 0..=args.steps {
        let before = heap::current();
        heap::reset_peak();
        let start = Instant::now();
        let model = hand.take().expect("put back after each step");
        hand = Some(by_hand(
            model,
            &mut optimizer,
            batch.clone(),
            ResNet::forward,
        ));
        let (hand_time, hand_peak) = (start.elapsed().as_secs_f64(), heap::peak() - before);

        let before = heap::current();
        let start = Instant::now();
        ours.micro_step(batch.clone());
        ours.update()?;
        let our_time = start.elapsed().as_secs_f64();
        if step > 0 {
            ratios.push(our_time / hand_time);
            // The trainer resets the heap's peak at its probes, and keeps the highest.
            let measured = ours.measurement().expect("the heap is counted");
            peaks = (measured.peak.0 - before, hand_peak);
            println!("hand-written {hand_time:.3} s, ours {our_time:.3} s");
        }
    }
    ratios.sort_by(f64::total_cmp);
    let (ours, hand) = peaks;
    println!("median time ratio {:.3}", ratios[ratios.len() / 2]);
    println!(
        "peak {} against {}: {:.4}x",
        Bytes(ours),
        Bytes(hand),
        ours as f64 / hand as f64
    );
    Ok(())
}
