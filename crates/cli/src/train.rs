//! `leanburn train`: any recipe, as the examples run it.

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Prediction, Table};
use leanburn_train::args::Flags;
use leanburn_train::task::Builds;
use leanburn_train::text::{SourceArgs, WritingArgs};
use leanburn_train::{
    ImageArgs, Images, Job, RunArgs, Text, TextArgs, TrainError, interrupt, saved,
};

use crate::Wrong;
use crate::print::out;
use crate::step::Kind;

/// What to train.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A recipe with memory = \"8GiB\" is planned at the start (leanburn plan shows how). Exit codes: 0 done, \
                  1 the run failed or does not fit, 2 wrong use, 130 interrupted (and saved)."
)]
pub struct Args {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten, next_help_heading = "Images")]
    images: ImageArgs,
    #[command(flatten, next_help_heading = "Text")]
    text: TextArgs,
    #[command(flatten, next_help_heading = "Text")]
    source: SourceArgs,
    #[command(flatten, next_help_heading = "Text")]
    writing: WritingArgs,
    /// Predict the step, row by row, and end before it.
    #[arg(long, help_heading = "Checks")]
    dry_run: bool,
    /// Let every update see the first batch, and judge on that: a loss that does not go to nothing then is a mistake in
    /// model, data or learning rate.
    #[arg(long, help_heading = "Checks")]
    overfit_batch: bool,
    /// After the run, take two updates in f32 and print their memory beside.
    #[arg(long, help_heading = "Checks", conflicts_with = "json")]
    compare_fp32: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    match kind(args)? {
        Kind::Images => {
            if args.text != TextArgs::default() || args.source != SourceArgs::default() {
                return Err(other("text", "images").into());
            }
            let job = open::<Images>(args, &args.run, &args.images)?;
            Ok(train(args, job)?.code)
        }
        Kind::Text => {
            if args.images != ImageArgs::default() {
                return Err(other("images", "text").into());
            }
            let mut run = args.run.clone();
            args.source.prepare(&mut run, &args.text)?;
            let trained = train(args, open::<Text>(args, &run, &args.text)?)?;
            if let (Some(model), false) = (&trained.model, args.run.json)
                && let Some(text) = args.writing.write(&trained.job, model)?
            {
                out(&format!("\n{text}\n"))?;
            }
            Ok(trained.code)
        }
    }
}

fn other(flags: &str, recipe: &str) -> Wrong {
    Wrong(format!(
        "flags for {flags}, and the recipe is of {recipe}: leanburn train --help lists whose is which"
    ))
}

/// That of the recipe, of the run that goes on, or of the flags.
fn kind(args: &Args) -> Result<Kind> {
    let resumed = args.run.resume.as_ref().map(|_| {
        let run = RunArgs {
            resume: args.run.resume.clone(),
            ..RunArgs::default()
        };
        run.output().join("recipe.toml")
    });
    match (resumed.filter(|path| path.is_file()), &args.run.config) {
        (Some(path), _) => Kind::of(Some(&path)),
        (None, Some(path)) => Kind::of(Some(path)),
        (None, None) if args.text != TextArgs::default() => Ok(Kind::Text),
        (None, None) if args.source != SourceArgs::default() => Ok(Kind::Text),
        (None, None) => Ok(Kind::Images),
    }
}

struct Opened<T: Builds> {
    job: Job<T>,
    resumed: Option<saved::Saved<T>>,
}

struct Trained<T: Builds> {
    job: Job<T>,
    /// Where the run went to its end.
    model: Option<T::Network>,
    code: ExitCode,
}

fn open<T: Builds>(
    args: &Args,
    run: &RunArgs,
    flags: &impl Flags<T>,
) -> Result<Opened<T>, TrainError> {
    let (recipe, resumed) = run.start(flags)?;
    let mut job = Job::open(recipe)?;
    job.force = run.force;
    if args.overfit_batch {
        job.learn_by_heart()?;
    }
    Ok(Opened { job, resumed })
}

fn train<T: Builds>(args: &Args, Opened { mut job, resumed }: Opened<T>) -> Result<Trained<T>> {
    if args.dry_run {
        let predicted = job.predict()?;
        let room = job.check_room(&predicted);
        out(&match args.run.json {
            true => format!("{}\n", dry_json(&job, &predicted, room.is_ok())),
            false => dry_text(&job, &predicted),
        })?;
        room?;
        return Ok(Trained {
            job,
            model: None,
            code: ExitCode::SUCCESS,
        });
    }
    interrupt::install();
    let output = args.run.output();
    let (report, network) = job.run(&output, resumed)?;
    T::save(&network, &output.join("model.safetensors"))?;
    let code = match report.interrupted {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    };
    if args.run.json {
        out(&format!("{}\n", report.to_json()))?;
    } else {
        let compare = args.compare_fp32 && !report.interrupted;
        let fp32 = compare.then(|| job.measure_in_f32()).transpose()?;
        let table = report.memory_table(fp32.as_ref());
        out(&format!("{}\n{table}", report.summary()))?;
    }
    Ok(Trained {
        job,
        model: (!report.interrupted).then_some(network),
        code,
    })
}

fn dry_text<T: Builds>(job: &Job<T>, predicted: &Prediction) -> String {
    let step = predicted.step();
    let table = Table {
        predicted: Some(&step),
        measured: None,
        fp32: None,
    };
    format!(
        "{} on {}, {}, checkpoint {}\n{}, {} updates\n{}\n\n{table}",
        T::model_name(&job.recipe.model),
        job.chosen.backend,
        job.policy.compute.name(),
        job.recipe.checkpoint,
        job.recipe.window(),
        job.updates,
        predicted.remark(),
    )
}

fn dry_json<T: Builds>(job: &Job<T>, predicted: &Prediction, fits: bool) -> serde_json::Value {
    serde_json::json!({
        "model": T::model_name(&job.recipe.model),
        "backend": job.chosen.backend.to_string(),
        "precision": job.policy.compute.name(),
        "checkpoint": job.recipe.checkpoint.to_string(),
        "offload": job.recipe.offload.name(),
        "batch": job.recipe.train.batch,
        "accumulate": job.recipe.train.accumulate,
        "optimizer": job.recipe.optimizer.name.name(),
        "updates": job.updates,
        "fits": fits,
        "needed": predicted.needed().0,
        "memory": leanburn_memory::to_json(Some(&predicted.step()), None),
    })
}
