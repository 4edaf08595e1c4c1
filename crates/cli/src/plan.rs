//! `leanburn plan`: the cheapest recipe that fits, and the largest batch.

mod args;
mod largest;
mod text;

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::Gpu;
use leanburn_train::plan::{Planner, rates};
use leanburn_train::task::Builds;
use leanburn_train::{Images, Text, runtime};

use crate::print::{out, write};
use crate::step::Kind;
use crate::subject::Subject;
use crate::{Wrong, budget};

pub use args::Args;

/// Runs the command; exit code 1 says that nothing fits.
pub fn run(args: &Args) -> Result<ExitCode> {
    let catalogue = budget::catalogue(args.catalogue.as_deref())?;
    let gpu = budget::card(&catalogue, args.device.as_deref())?;
    let given = args.given(gpu);
    match args.step.kind()? {
        Kind::Images => plan(args, gpu, Subject::<Images>::images(&args.step, &given)?),
        Kind::Text => plan(args, gpu, Subject::<Text>::text(&args.step, &given)?),
    }
}

fn plan<T: Builds>(args: &Args, gpu: Option<&Gpu>, mut subject: Subject<T>) -> Result<ExitCode> {
    let memory = args.memory.or(subject.recipe.memory.take());
    let subject = &subject;
    let on_gpu = runtime(subject.backend).has_pool();
    let Some(budget) = budget::budget(gpu, memory, on_gpu) else {
        let why = "how much memory is there? --memory 8GiB, --device \"RTX 3060\", or memory = \"8GiB\" in the recipe";
        return Err(Wrong(why.into()).into());
    };
    let policy = |recipe: &_| subject.policy_of(recipe);
    let rates = gpu.map_or_else(|| rates(subject.backend), Gpu::rates);
    let planner = Planner::new(subject.target(&policy), args.kept(), rates);
    let planner = planner.with_half(subject.half);
    if args.largest_batch {
        return largest::run(args, subject, &planner, &budget);
    }
    let mut plan = planner.plan(&subject.recipe, &budget)?;
    // A card has less to give than its size.
    plan.recipe.memory = memory.filter(|_| gpu.is_none() && plan.fit().is_sure());
    let written = match &args.apply {
        Some(path) if plan.fit().is_sure() => {
            let path = args::planned_name(path, args.step.config.as_deref());
            write(&path, &text::toml(&plan.recipe)?)?;
            Some(path)
        }
        _ => None,
    };
    out(&match args.json {
        true => format!("{}\n", text::json(&plan, subject)?),
        false => text::text(&plan, subject, written.as_ref())?,
    })?;
    Ok(budget::exit_code(Some(plan.fit())))
}
