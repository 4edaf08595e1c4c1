//! `leanburn estimate`: one step, predicted; a curve over the batch; what each lever saves.

mod args;
mod formula;
mod levers;
mod print;
mod sweep;

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Catalogue, Gpu};
use leanburn_train::task::Builds;
use leanburn_train::{Images, Text, runtime};

use crate::print::{out, write};
use crate::step::Kind;
use crate::subject::{Given, Subject};
use crate::timeline;
use crate::{Wrong, budget};

pub use args::{Args, count};

/// Runs the command; exit code 1 says that it does not fit.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(transformer) = &args.transformer {
        return formula::run(args, transformer);
    }
    // clap lets a requirement go where the two flags conflict through a third.
    if args.explain {
        return Err(Wrong("--explain is for --transformer".into()).into());
    }
    let catalogue = Catalogue::builtin();
    let gpu = budget::card(&catalogue, args.device.as_deref())?;
    let given = Given {
        backend: args.backend,
        gpu,
        classes: args.classes,
        tokens: args.tokens,
    };
    match args.step.kind()? {
        Kind::Images => predict(args, gpu, &Subject::<Images>::images(&args.step, &given)?),
        Kind::Text => predict(args, gpu, &Subject::<Text>::text(&args.step, &given)?),
    }
}

fn predict<T: Builds>(args: &Args, gpu: Option<&Gpu>, subject: &Subject<T>) -> Result<ExitCode> {
    let memory = args.memory.or(subject.recipe.memory);
    let on_gpu = runtime(subject.backend).has_pool();
    let budget = budget::budget(gpu, memory, on_gpu);
    let budget_of = budget.as_ref();
    if let Some(range) = &args.sweep {
        let sweep = sweep::Sweep::of(subject, *range, budget_of)?;
        out(&sweep.render(args.json))?;
        return Ok(match sweep.fits_nowhere() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        });
    }
    if args.levers {
        let levers = levers::Levers::of(subject, budget_of)?;
        out(&levers.render(args.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let prediction = subject.predict()?;
    if let Some(path) = &args.timeline {
        let memory = budget_of.map(|budget| budget.memory);
        let svg = timeline::draw(&prediction, &subject.short_title(), memory)?;
        write(path, &svg.wide)?;
    }
    let fits = budget_of.map(|budget| budget.holds(&prediction));
    out(&match args.json {
        true => format!("{}\n", print::json(&prediction, subject, budget_of)),
        false => print::text(&prediction, subject, budget_of),
    })?;
    Ok(budget::exit_code(fits))
}
