//! The same ResNet in Burn's own `Learner`: its metrics, its checkpoints, and with `--features tui`
//! its terminal dashboard.
//!
//!     cargo run --example learner -- --steps-per-epoch 8

use std::process::ExitCode;
use std::sync::Arc;

use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataset::transform::PartialDataset;
use burn::train::metric::{AccuracyMetric, LearningRateMetric, LossMetric};
use burn::train::{Learner, SupervisedTraining};
use clap::Parser;
use leanburn::data::{BurnDataset, Digits, SampleBatcher, Split};
use leanburn::levers::{LossScaler, Policy};
use leanburn::memory::{CountingAllocator, Meter};
use leanburn::models::{Depth, ResNetConfig, Stem};
use leanburn::train::images::LearnerResNet;
use leanburn::train::recipe::LossScaleRecipe;
use leanburn::train::{Adam, Backend, OptimizerKind, Schedule, TrainError, choose, exit_code};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Train a small ResNet-18 on the digits with burn-train's Learner.
#[derive(Parser)]
struct Args {
    /// Passes over the data.
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Batches of 32 in an epoch.
    #[arg(long, default_value_t = 16)]
    steps_per_epoch: usize,
    /// auto, fp32, f16 or bf16.
    #[arg(long, default_value = "auto")]
    precision: String,
    /// auto, flex, wgpu, vulkan or cuda.
    #[arg(long, default_value = "auto")]
    backend: Backend,
    /// Folder for burn-train's logs and checkpoints.
    #[arg(long, default_value = "runs/learner")]
    output: String,
}

fn main() -> ExitCode {
    exit_code(run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), TrainError> {
    const BATCH: usize = 32;
    let chosen = choose(args.backend)?;
    let device = chosen.device.clone().autodiff();
    let meter = Meter::new(&chosen.device);
    let policy = Policy::resolve(&args.precision, &device)?;
    let rule = LossScaleRecipe::default().resolve(policy)?;

    let digits = |split| -> Result<_, TrainError> {
        let source = BurnDataset(Arc::new(Digits::load(split, 16)?));
        let items = (args.steps_per_epoch * BATCH).min(1437);
        Ok(PartialDataset::new(
            source,
            0,
            items.min(if split == Split::Val { 360 } else { items }),
        ))
    };
    let loader = |dataset| {
        DataLoaderBuilder::new(SampleBatcher)
            .batch_size(BATCH)
            .shuffle(0)
            .num_workers(1)
            .build(dataset)
    };
    let model = ResNetConfig::new(Depth::R18, 10)
        .with_stem(Stem::Small)
        .with_width(16)
        .init(&device)
        .with_policy(policy);
    let model = LearnerResNet::new(model, LossScaler::new(rule)?, Some(5.0));
    let (optimizer, _) = OptimizerKind::Sgd.init(&model, 5e-4, Adam::default());
    let updates = (args.epochs * args.steps_per_epoch) as u64;
    let schedule = Schedule::default().start(0.05, updates, 0)?;

    SupervisedTraining::new(
        &args.output,
        loader(digits(Split::Train)?),
        loader(digits(Split::Val)?),
    )
    .metrics((AccuracyMetric::new(), LossMetric::new()))
    .metric_train_numeric(LearningRateMetric::new())
    .with_training_strategy(burn::train::TrainingStrategy::Default(
        burn::train::ExecutionStrategy::SingleDevice(device),
    ))
    .num_epochs(args.epochs)
    .summary()
    .launch(Learner::new(model, optimizer, schedule));
    if let Some(peak) = meter.peak() {
        println!("peak memory {peak} ({})", meter.source());
    }
    Ok(())
}
