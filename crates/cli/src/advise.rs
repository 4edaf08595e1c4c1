//! `leanburn advise`: which cards and cloud machines run a recipe.

mod text;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::Result;
use leanburn_levers::Precision;
use leanburn_memory::{Budget, Catalogue, Gpu, Instance};
use leanburn_train::plan::{Planner, Step, rates};
use leanburn_train::task::{Builds, Loaders};
use leanburn_train::{BackendKind, Images, Keep, Plan, Recipe, Text};

use crate::budget;
use crate::gpus::price_of_one;
use crate::print::out;
use crate::step::{Kind, StepArgs};
use crate::subject::{Given, Subject, backend_of};

/// What to run.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Times are a roofline of what the step computes and moves, at the vendors' peaks: at best. Real steps take \
                  longer, by factors that differ little between cards of a kind. Machines with several GPUs are taken to \
                  share an epoch evenly. docs/planning.md says more."
)]
pub struct Args {
    #[command(flatten)]
    step: StepArgs,
    /// Classes of the images, where their folder is not here.
    #[arg(long, value_name = "N", value_parser = crate::estimate::count)]
    classes: Option<usize>,
    /// Distinct tokens of the text, where the token file is not here.
    #[arg(long, value_name = "N", value_parser = crate::estimate::count)]
    tokens: Option<usize>,
    /// Samples (images or sequences) of an epoch, where the data are not here.
    #[arg(long, value_name = "N", value_parser = crate::estimate::count)]
    samples: Option<usize>,
    /// GPUs and machines of your own (TOML, as crates/memory/src/catalogue.toml).
    #[arg(long, value_name = "FILE")]
    catalogue: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// What comes of a recipe on one card.
struct Advice<'a, T: Builds> {
    gpu: &'a Gpu,
    plan: Rc<Plan<T>>,
    /// Of an update, at best.
    seconds: Option<f64>,
    /// Machines with that card, and dollars of an epoch.
    rent: Vec<(&'a Instance, Option<f64>)>,
}

/// Runs the command; exit code 1 says that it fits nowhere.
pub fn run(args: &Args) -> Result<ExitCode> {
    // A backend of GPUs, so that the recipe is not taken for the CPU's.
    let given = Given {
        backend: Some(BackendKind::Cuda.into()),
        gpu: None,
        classes: args.classes,
        tokens: args.tokens,
    };
    match args.step.kind()? {
        Kind::Images => advise(args, &Subject::<Images>::images(&args.step, &given)?),
        Kind::Text => advise(args, &Subject::<Text>::text(&args.step, &given)?),
    }
}

fn advise<T: Builds>(args: &Args, subject: &Subject<T>) -> Result<ExitCode> {
    let catalogue = budget::catalogue(args.catalogue.as_deref())?;
    let updates = updates(args, &subject.recipe);
    let mut advice = Vec::new();
    for kind in [BackendKind::Cuda, BackendKind::Rocm, BackendKind::Metal] {
        let subject = &Subject {
            backend: kind.into(),
            ..subject.clone()
        };
        for bf16 in [true, false] {
            let of_kind = |gpu: &&Gpu| backend_of(gpu) == kind && gpu.bf16 == bf16;
            let gpus: Vec<&Gpu> = catalogue.gpus().iter().filter(of_kind).collect();
            advice.extend(on_cards(subject, &gpus, &catalogue, updates)?);
        }
    }
    advice.sort_by(|a, b| {
        let first = |advice: &Advice<T>| (!advice.plan.fit().is_sure(), advice.plan.steps.len());
        let memory = |advice: &Advice<T>| advice.gpu.memory();
        first(a).cmp(&first(b)).then(memory(a).cmp(&memory(b)))
    });
    out(&match args.json {
        true => format!("{}\n", text::json(&advice, subject, updates)),
        false => text::text(&advice, subject, updates),
    })?;
    Ok(match advice.iter().any(|one| one.plan.fit().is_sure()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Cards of one backend and one half precision; those with equal memory share a plan.
fn on_cards<'a, T: Builds>(
    subject: &Subject<T>,
    gpus: &[&'a Gpu],
    catalogue: &'a Catalogue,
    updates: Option<u64>,
) -> Result<Vec<Advice<'a, T>>> {
    let half = gpus.first().map_or("bf16", |gpu| gpu.half());
    let mut subject = Subject {
        half,
        ..subject.clone()
    };
    let replaced = half == "f16" && subject.policy()?.compute == Precision::Bf16;
    if replaced {
        subject.recipe.precision.policy = half.into();
    }
    let subject = &subject;
    let policy = |recipe: &Recipe<T>| subject.policy_of(recipe);
    let planner = Planner::new(
        subject.target(&policy),
        Keep::default(),
        rates(subject.backend),
    );
    let planner = planner.with_half(half);
    let mut plans: HashMap<u64, Rc<Plan<T>>> = HashMap::new();
    let mut advice = Vec::new();
    for gpu in gpus {
        let plan = match plans.get(&gpu.memory_mib) {
            Some(plan) => plan.clone(),
            None => {
                let mut plan = planner.plan(&subject.recipe, &Budget::card(gpu))?;
                if replaced {
                    plan.steps.insert(0, instead_of_bf16(&plan));
                }
                let plan = Rc::new(plan);
                plans.insert(gpu.memory_mib, plan.clone());
                plan
            }
        };
        let seconds = plan.seconds_at(gpu.rates());
        let rent = catalogue.with(gpu).map(|instance| {
            let hours = updates
                .zip(seconds)
                .map(|(updates, seconds)| updates as f64 * seconds / 3600.0);
            (instance, hours.map(|hours| hours * price_of_one(instance)))
        });
        advice.push(Advice {
            gpu,
            seconds,
            rent: rent.collect(),
            plan,
        });
    }
    Ok(advice)
}

/// What a card without bf16 does to a recipe that wants it.
fn instead_of_bf16<T: Builds>(plan: &Plan<T>) -> Step {
    Step {
        lever: "precision f16".into(),
        costs: "the card has no bf16".into(),
        saves: 0,
        slower: None,
        needed: plan.before,
    }
}

/// Updates of an epoch; `None` where nobody says how many samples there are.
fn updates<T: Builds>(args: &Args, recipe: &Recipe<T>) -> Option<u64> {
    let (batch, accumulate) = (recipe.train.batch, recipe.train.accumulate);
    let micro_batches = match args.samples {
        Some(samples) => samples.div_ceil(batch),
        None => T::open(recipe).ok()?.batches(),
    };
    Some(micro_batches.div_ceil(accumulate) as u64)
}
