//! Trains a ResNet in mixed precision and accounts for every byte.
//!
//!     cargo run --example resnet_amp -- --batch 64

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use leanburn::levers::LossScaler;
use leanburn::memory::{Bytes, CountingAllocator, Measurement, Meter, census, render};
use leanburn::models::ResNet;
use leanburn::train::{
    Chosen, Loaders, Progress, Recipe, Report, RunArgs, Settings, Start, TrainError, Trainer,
    choose, exit_code, fit, interrupt, saved,
};

// Counts the heap, which is where the CPU backend keeps its tensors.
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Train a ResNet in mixed precision, with f32 master weights, and print its memory table.
///
/// Without flags: ResNet-50 on the digits that ship with the repository, for about three minutes on
/// two CPU cores.
#[derive(Parser)]
#[command(
    after_help = "Exit codes: 0 done, 1 the run failed, 2 wrong use, 130 interrupted (and saved)."
)]
struct Args {
    #[command(flatten)]
    run: RunArgs,
    /// After the run, take two updates in f32 and print its memory beside.
    #[arg(long)]
    compare_fp32: bool,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(report) if report.interrupted => ExitCode::from(130),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => exit_code(Err(error)),
    }
}

fn run(args: &Args) -> Result<Report, TrainError> {
    // A resumed run goes on with its own recipe.
    let resumed = match &args.run.resume {
        Some(path) => {
            let note = |error: &TrainError| eprintln!("skipping {error}");
            Some(saved::open(path, args.run.resume_previous, note)?)
        }
        None => None,
    };
    let recipe = match &resumed {
        Some(saved) => args.run.recipe_over(saved.state.recipe.clone())?,
        None => args.run.recipe()?,
    };
    let chosen = choose(recipe.backend)?;
    interrupt::install();
    let loaders = Loaders::open(&recipe)?;
    let output = args.run.output();
    let report = train(&output, &recipe, &chosen, &loaders, resumed)?;
    report.save(&output.join("report.json"))?;
    let compare = args.compare_fp32 && !report.interrupted;
    let fp32 = compare
        .then(|| two_updates_in_f32(&recipe, &chosen, &loaders))
        .transpose()?;
    if args.run.json {
        println!("{}", report.to_json());
    } else {
        println!("{}", report.summary());
        if let Some(measured) = &report.memory {
            print!("{}", render(measured, fp32.as_ref()));
        }
    }
    Ok(report)
}

fn train(
    output: &Path,
    recipe: &Recipe,
    chosen: &Chosen,
    loaders: &Loaders,
    resumed: Option<saved::Saved>,
) -> Result<Report, TrainError> {
    let total = recipe.updates(loaders.train.batches());
    let (mut trainer, precision) = trainer(recipe, chosen, loaders, total)?;
    let parameters = census(trainer.model()).parameters.elements;
    eprintln!(
        "{} on {} ({}), {precision}",
        recipe.model.depth, chosen.backend, chosen.why
    );
    eprintln!(
        "{}: {} classes",
        loaders.train.source().name(),
        loaders.classes()
    );
    eprintln!("{}, {total} updates", recipe.train.window());
    eprintln!("{}", trainer.decay_groups().summary());
    let mut start = Start::default();
    if let Some(saved) = resumed {
        start = Start {
            epoch: saved.state.epoch,
            samples: saved.state.samples,
        };
        eprintln!(
            "resuming {} after update {}",
            saved.path.display(),
            saved.state.tried
        );
        let schedule = recipe
            .schedule
            .start(recipe.optimizer.lr, total, saved.state.applied)?;
        trainer.restore(saved, schedule)?;
    }
    let mut progress = Progress::new(total, trainer.tried());
    let device = chosen.device.clone().autodiff();
    let outcome = fit(
        &mut trainer,
        loaders,
        recipe,
        &device,
        output,
        start,
        &mut progress,
    )?;
    progress.finish();
    Ok(Report {
        recipe: recipe.clone(),
        backend: chosen.backend,
        precision,
        data: loaders.train.source().name(),
        parameters,
        steps: trainer.applied(),
        skipped_steps: trainer.scaler().skipped(),
        seconds: progress.seconds(),
        items_per_second: progress.items_per_second(),
        loss: outcome.score.loss(),
        accuracy: outcome.score.accuracy(),
        unreadable: loaders.unreadable(),
        interrupted: outcome.interrupted,
        memory: trainer.measurement().cloned(),
    })
}

fn trainer(
    recipe: &Recipe,
    chosen: &Chosen,
    loaders: &Loaders,
    updates: u64,
) -> Result<(Trainer<ResNet>, &'static str), TrainError> {
    let meter = Meter::new(&chosen.device);
    let origin = meter.current().unwrap_or(Bytes(0));
    let device = chosen.device.clone().autodiff();
    device.seed(recipe.train.seed);
    let policy = recipe.policy(&device)?;
    let mut model = recipe.resnet(loaders.classes()).init(&device);
    if let Some(path) = &recipe.model.weights {
        let (loaded, report) = model.load_weights(path, recipe.model.new_head)?;
        eprintln!("{}: {report}", path.display());
        model = loaded;
    }
    let settings = Settings::of(recipe);
    let schedule = recipe.schedule.start(recipe.optimizer.lr, updates, 0)?;
    let scaler = LossScaler::new(recipe.precision.loss_scale.resolve(policy)?)?;
    let trainer = Trainer::new(
        model.with_policy(policy),
        settings,
        schedule,
        scaler,
        meter,
        origin,
    );
    Ok((trainer, policy.compute.name()))
}

fn two_updates_in_f32(
    recipe: &Recipe,
    chosen: &Chosen,
    loaders: &Loaders,
) -> Result<Measurement, TrainError> {
    let mut recipe = recipe.clone();
    recipe.precision.policy = "fp32".into();
    recipe.precision.loss_scale = Default::default();
    let (mut trainer, _) = trainer(&recipe, chosen, loaders, 2)?;
    let device = chosen.device.clone().autodiff();
    let accumulate = recipe.train.accumulate;
    for batch in loaders.train.epoch(0, 0).take(2 * accumulate) {
        trainer.micro_step(batch?.into_device(&device));
        if trainer.waiting() == accumulate {
            trainer.update()?;
        }
    }
    let missing = || TrainError::Device("this backend does not report its memory".into());
    trainer.measurement().cloned().ok_or_else(missing)
}
