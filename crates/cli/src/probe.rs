//! `leanburn probe`: a few updates of a recipe on one backend.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use leanburn_memory::{Bytes, Prediction, Table, record, to_json};
use leanburn_train::task::Builds;
use leanburn_train::{Backend, Job, Probe, Recipe, Task};
use serde_json::{Value, json};

use crate::print::out;
use crate::step::{Kind, StepArgs};

/// Trains for a few updates, saves nothing, and prints memory, time and losses.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    step: StepArgs,
    /// auto, flex (CPU), wgpu, vulkan, metal, cuda or rocm, with a device's number: cuda:1, wgpu:cpu.
    #[arg(long, value_name = "NAME")]
    backend: Option<Backend>,
    /// Updates.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    steps: u64,
    /// Start even where the step is predicted not to fit into the memory that is free.
    #[arg(long)]
    force: bool,
    /// Play a machine with less memory, on the CPU: an allocation that passes so many bytes, besides what the program
    /// has before the model, fails and ends it.
    #[arg(long, value_name = "BYTES")]
    heap: Option<Bytes>,
    /// Write down how far each step came, for whoever finds this process dead.
    #[arg(long, value_name = "FILE", hide = true)]
    trail: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let Some(trail) = &args.trail {
        record::follow(trail).with_context(|| trail.display().to_string())?;
        end_with_parent();
    }
    match args.step.kind()? {
        Kind::Images => probe(args, args.step.images(args.backend)?),
        Kind::Text => probe(args, args.step.text(args.backend)?),
    }
}

/// The parent holds the other end of stdin; where it is gone, nobody waits for the result.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
}

fn probe<T: Builds>(args: &Args, recipe: Recipe<T>) -> Result<ExitCode> {
    let mut job = Job::open(recipe)?;
    job.force = args.force;
    job.heap = args.heap;
    let probe = job.probe(args.steps)?;
    out(&match args.json {
        true => format!("{}\n", json(&job, &probe)),
        false => text(&job, &probe),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text<T: Task>(job: &Job<T>, probe: &Probe) -> String {
    let predicted = probe.predicted.as_ref().map(Prediction::step);
    let table = Table {
        predicted: predicted.as_ref(),
        measured: probe.measured.as_ref(),
        fp32: None,
    };
    let losses: Vec<String> = probe
        .losses
        .iter()
        .map(|loss| format!("{loss:.4}"))
        .collect();
    let mut text = format!("{table}losses {}\n", losses.join(" "));
    if let Some(reserved) = probe.reserved {
        text += &format!("the pool holds {reserved}\n");
    }
    let (first, median) = (probe.seconds.first().copied(), median(&probe.seconds));
    text += &format!(
        "{}: first update {:.2} s, median of the others {}\n",
        job.chosen.backend,
        first.unwrap_or_default(),
        median.map_or("unknown".into(), |median| format!("{median:.3} s")),
    );
    text
}

fn json<T: Task>(job: &Job<T>, probe: &Probe) -> Value {
    let recipe = &job.recipe;
    let properties = job.chosen.properties();
    let predicted = probe.predicted.as_ref().map(Prediction::step);
    let points = probe.points.iter().map(
        |point| json!({ "at": point.mark.to_string(), "live": point.live, "peak": point.peak }),
    );
    json!({
        "model": T::model_name(&recipe.model),
        "backend": job.chosen.backend.to_string(),
        "device": properties.name,
        "driver": properties.driver,
        "precision": job.policy.compute.name(),
        "checkpoint": recipe.checkpoint.to_string(),
        "offload": recipe.offload.name(),
        "batch": recipe.train.batch,
        "accumulate": recipe.train.accumulate,
        "optimizer": recipe.optimizer.name.name(),
        "steps": probe.losses.len(),
        "skipped_steps": probe.skipped,
        "losses": probe.losses,
        "seconds": probe.seconds,
        "first_step_seconds": probe.seconds.first(),
        "seconds_per_step": median(&probe.seconds),
        "memory": to_json(predicted.as_ref(), probe.measured.as_ref()),
        "reserved": probe.reserved.map(|Bytes(bytes)| bytes),
        "points": points.collect::<Vec<_>>(),
    })
}

/// Of all but the first, which compiles and tunes kernels; `None` where there are no others.
fn median(seconds: &[f64]) -> Option<f64> {
    let mut others = seconds.get(1..)?.to_vec();
    others.sort_by(f64::total_cmp);
    let middle = others.len() / 2;
    match others.len() % 2 {
        0 => Some((others.get(middle.checked_sub(1)?)? + others.get(middle)?) / 2.0),
        _ => others.get(middle).copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_leaves_out_the_first_step() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[9.0]), None);
        assert_eq!(median(&[9.0, 2.0]), Some(2.0));
        assert_eq!(median(&[9.0, 3.0, 1.0]), Some(2.0));
        assert_eq!(median(&[0.0, 3.0, 1.0, 2.0]), Some(2.0));
    }
}
