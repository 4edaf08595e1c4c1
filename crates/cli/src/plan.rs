//! `leanburn plan`: the cheapest recipe that fits, and the largest batch.

mod args;
mod largest;
mod text;

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::Budget;
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
    let given = args.given();
    match args.step.kind()? {
        Kind::Images => plan(args, &Subject::<Images>::images(&args.step, &given)?),
        Kind::Text => plan(args, &Subject::<Text>::text(&args.step, &given)?),
    }
}

fn plan<T: Builds>(args: &Args, subject: &Subject<T>) -> Result<ExitCode> {
    let catalogue = budget::catalogue(args.catalogue.as_deref())?;
    let card = args
        .device
        .as_deref()
        .map(|name| catalogue.find(name))
        .transpose()?;
    let memory = args.memory.or(subject.recipe.memory);
    let on_gpu = runtime(subject.backend).has_pool();
    let budget = match (card, memory) {
        (Some(card), _) => Budget::card(card),
        (None, Some(memory)) => Budget::of(memory, on_gpu),
        (None, None) => {
            let why = "how much memory is there? --memory 8GiB, --device \"RTX 3060\", or memory = \"8GiB\" in the recipe";
            return Err(Wrong(why.into()).into());
        }
    };
    let policy = |recipe: &_| subject.policy_of(recipe);
    let rates = card.map_or_else(|| rates(subject.backend), |card| card.rates());
    let half = match card {
        Some(card) if !card.bf16 => "f16",
        _ => "bf16",
    };
    let planner = Planner::new(subject.target(&policy), args.kept(), rates).with_half(half);
    if args.largest_batch {
        return largest::run(args, subject, &planner, &budget);
    }
    let plan = planner.plan(&subject.recipe, &budget)?;
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
