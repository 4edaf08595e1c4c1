//! `leanburn estimate`: one step, predicted; a curve over the batch; what each lever saves.

mod args;
mod budget;
mod formula;
mod levers;
mod print;
mod recipe;
mod sweep;

use std::process::ExitCode;

use anyhow::{Context, Result};
use leanburn_memory::Prediction;
use leanburn_train::{Images, Text, runtime};

use crate::timeline::{Point, Timeline};

pub use args::Args;
use budget::Budget;
use recipe::{Kind, Subject};

/// A flag that cannot be.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Wrong(pub String);

/// Runs the command; exit code 1 says that it does not fit.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(transformer) = &args.transformer {
        return formula::run(args, transformer);
    }
    // clap lets a requirement go where the two flags conflict through a third.
    if args.explain {
        return Err(Wrong("--explain is for --transformer".into()).into());
    }
    match Kind::of(args.config.as_deref())? {
        Kind::Images => predict(args, &Subject::<Images>::images(args)?),
        Kind::Text => predict(args, &Subject::<Text>::text(args)?),
    }
}

fn predict<T: leanburn_train::task::Builds>(args: &Args, subject: &Subject<T>) -> Result<ExitCode> {
    let budget = Budget::of(args, runtime(subject.backend).has_pool())?;
    let budget_of = budget.as_ref();
    if let Some(range) = &args.sweep {
        let sweep = sweep::Sweep::of(subject, *range, budget_of)?;
        print::out(&sweep.render(args.json))?;
        return Ok(match sweep.fits_nowhere() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        });
    }
    if args.levers {
        let levers = levers::Levers::of(subject, budget_of)?;
        print::out(&levers.render(args.json))?;
        return Ok(ExitCode::SUCCESS);
    }
    let prediction = subject.predict()?;
    if let Some(path) = &args.timeline {
        let svg = draw(&prediction, &subject.short_title(), budget_of)?;
        std::fs::write(path, svg).with_context(|| path.display().to_string())?;
        eprintln!("wrote {}", path.display());
    }
    let fits = budget_of.map(|budget| budget.holds(&prediction));
    print::out(&match args.json {
        true => format!("{}\n", print::json(&prediction, subject, budget_of)),
        false => print::text(&prediction, subject, budget_of),
    })?;
    Ok(budget::exit_code(fits))
}

fn draw(prediction: &Prediction, title: &str, budget: Option<&Budget>) -> Result<String> {
    let points = prediction.timeline.iter().map(|rows| Point { rows: *rows });
    let points: Vec<Point> = points.collect();
    let blocks = prediction.blocks.iter().enumerate();
    let marks: Vec<(usize, String)> = blocks.map(|(n, at)| (*at, format!("block {n}"))).collect();
    let timeline = Timeline {
        title,
        points: &points,
        phases: &prediction.phases,
        budget: budget.map(|budget| budget.memory),
        marks: &marks,
    };
    Ok(timeline.svg()?)
}
