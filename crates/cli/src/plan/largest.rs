//! `leanburn plan --largest-batch`.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use leanburn_memory::{Budget, Bytes};
use leanburn_train::plan::{Largest, Planner, Probed, largest_batch};
use leanburn_train::task::Builds;
use leanburn_train::{Backend, Recipe};
use serde_json::{Value, json};

use super::Args;
use crate::child::Child;
use crate::print::out;
use crate::subject::Subject;

/// The first update makes the optimizer's state, the second is the one that counts.
const UPDATES: u64 = 2;

pub fn run<T: Builds>(
    args: &Args,
    subject: &Subject<T>,
    planner: &Planner<T>,
    budget: &Budget,
) -> Result<ExitCode> {
    let probe = |recipe: &Recipe<T>| probe(recipe, subject.backend);
    let probe = args.confirm.then_some(probe);
    let largest = largest_batch(planner, &subject.recipe, budget, probe)?;
    out(&match args.json {
        true => format!("{}\n", json(&largest, subject, budget)),
        false => text(&largest, subject, budget),
    })?;
    Ok(match largest.batch {
        0 => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

/// Runs the recipe in a process of its own, so that a step without room takes nothing else down, and nothing of it
/// stays (traps B34, B35).
fn probe<T: Builds>(recipe: &Recipe<T>, backend: Backend) -> Result<Probed> {
    let folder = tempfile::tempdir().context("a folder for the recipe")?;
    let file = folder.path().join("recipe.toml");
    recipe.save(&file)?;
    eprintln!("batch {}: running {UPDATES} updates", recipe.train.batch);
    let child = Child {
        recipe: &file,
        folder: folder.path(),
        backend,
        steps: UPDATES,
        limit: None,
        // What is free is what the step will tell.
        force: true,
    };
    match child.run()? {
        Ok(ran) => {
            let measured = &ran.memory["peak"]["measured"];
            let peak = measured
                .as_u64()
                .context("this backend does not report its memory")?;
            Ok(Probed::Took(Bytes(ran.reserved.unwrap_or(peak).max(peak))))
        }
        Err(failure) if failure.out_of_memory => Ok(Probed::OutOfMemory),
        Err(failure) => Err(anyhow!("batch {}: {failure}", recipe.train.batch)),
    }
}

fn text<T: Builds>(largest: &Largest, subject: &Subject<T>, budget: &Budget) -> String {
    let mut text = String::new();
    for (batch, predicted, probed) in &largest.probes {
        text += &match probed {
            Probed::Took(took) => format!(
                "batch {batch}: {predicted} predicted, {took} measured ({:+.1} %)\n",
                100.0 * (took.0 as f64 / predicted.0.max(1) as f64 - 1.0)
            ),
            Probed::OutOfMemory => {
                format!("batch {batch}: {predicted} predicted, and memory ran out\n")
            }
        };
    }
    if largest.probes.len() > 1 {
        text += "prediction was off, so the batch was stepped down\n";
    }
    let model = T::model_name(&subject.recipe.model);
    text + &match largest.batch {
        0 => format!(
            "not even one sample of {model} fits into {}\n",
            budget.told()
        ),
        batch => format!(
            "largest batch of {model}: {batch} ({})\n",
            budget.verdict(budget.fits(largest.needed))
        ),
    }
}

fn json<T: Builds>(largest: &Largest, subject: &Subject<T>, budget: &Budget) -> Value {
    let probes = largest.probes.iter().map(|(batch, predicted, probed)| {
        let measured = match probed {
            Probed::Took(took) => Some(took.0),
            Probed::OutOfMemory => None,
        };
        json!({ "batch": batch, "peak": { "predicted": predicted.0, "measured": measured } })
    });
    json!({
        "model": T::model_name(&subject.recipe.model),
        "backend": subject.backend.to_string(),
        "budget": budget.memory.0,
        "fits": largest.batch > 0,
        "largest_batch": largest.batch,
        "peak": { "predicted": largest.needed.0 },
        "probes": probes.collect::<Vec<_>>(),
    })
}
