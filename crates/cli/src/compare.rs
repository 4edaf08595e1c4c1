//! `leanburn compare`: the same updates on several backends, side by side.

mod args;
mod comparison;
mod page;
mod table;

use std::process::ExitCode;

use anyhow::{Context, Result};
use leanburn_train::task::Builds;
use leanburn_train::{Backend, BackendKind, Recipe, available};

use crate::Wrong;
use crate::child::Child;
use crate::print::{out, write};
use crate::step::Kind;
use crate::subject::Subject;
pub use args::Args;
use comparison::{Comparison, Side};

/// Runs the command; exit code 1 says that a backend failed.
pub fn run(args: &Args) -> Result<ExitCode> {
    match args.step.kind()? {
        Kind::Images => compare(args, args.step.images(None)?),
        Kind::Text => compare(args, args.step.text(None)?),
    }
}

fn compare<T: Builds>(args: &Args, recipe: Recipe<T>) -> Result<ExitCode> {
    let backends = backends(args)?;
    writable(args)?;
    let facts = T::data_facts(&recipe)?;
    let folder = tempfile::tempdir().context("a folder for the recipe")?;
    let mut sides = Vec::new();
    for backend in backends {
        let mut recipe = recipe.clone();
        recipe.backend = backend;
        let file = folder.path().join("recipe.toml");
        recipe.save(&file)?;
        eprintln!("{backend}: {} updates", args.steps);
        let child = Child {
            recipe: &file,
            folder: folder.path(),
            backend,
            steps: args.steps,
            limit: args.limit,
            force: args.force,
        };
        let result = child.run()?;
        if let Err(failure) = &result {
            eprintln!("{backend}: {failure}");
        }
        // `auto` is what the device turned out to have.
        if let Ok(ran) = &result {
            recipe.precision.policy.clone_from(&ran.precision);
        }
        let subject = Subject {
            recipe,
            facts: facts.clone(),
            backend,
            half: "bf16",
        };
        sides.push(Side {
            backend,
            title: subject.short_title(),
            traced: match args.html.is_some() || result.is_err() {
                true => subject.predict().ok(),
                false => None,
            },
            result,
        });
    }
    let comparison = Comparison {
        title: T::model_name(&recipe.model),
        batch: recipe.train.batch,
        accumulate: recipe.train.accumulate,
        steps: args.steps,
        sides,
    };
    out(&match args.json {
        true => format!("{}\n", comparison.to_json()),
        false => table::text(&comparison),
    })?;
    if let Some(path) = &args.svg {
        write(path, &page::bars(&comparison).svg(SVG_WIDTH))?;
    }
    if let Some(path) = &args.html {
        write(path, &page::page(&comparison).html())?;
    }
    Ok(
        match comparison.sides.iter().all(|side| side.result.is_ok()) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
    )
}

/// Width of `--svg`, in pixels.
const SVG_WIDTH: u32 = 1200;

/// Before minutes of work: whether its result can be written.
fn writable(args: &Args) -> Result<()> {
    if args.html.is_some() && args.html == args.svg {
        return Err(Wrong("--html and --svg name one file".into()).into());
    }
    for (flag, path) in [("--html", &args.html), ("--svg", &args.svg)] {
        if let Some(path) = path {
            let open = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path);
            open.map_err(|error| Wrong(format!("{flag} {}: {error}", path.display())))?;
        }
    }
    Ok(())
}

/// Those of the flag, or all that have a device.
fn backends(args: &Args) -> Result<Vec<Backend>> {
    let backends = match args.backends.as_slice() {
        [] => available(),
        given => given.to_vec(),
    };
    if backends
        .iter()
        .any(|backend| backend.kind == BackendKind::Auto)
    {
        return Err(Wrong("--backends wants names: auto is one of the others".into()).into());
    }
    if (1..backends.len()).any(|n| backends[..n].contains(&backends[n])) {
        return Err(Wrong("--backends names one twice".into()).into());
    }
    match backends.is_empty() {
        true => Err(Wrong("no backend with a device, see `leanburn devices`".into()).into()),
        false => Ok(backends),
    }
}
