//! How far predictions are off: training steps predicted from their trace, then run and measured.
//!
//!     cargo run --release --example accuracy_matrix

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Parser;
use leanburn::levers::Policy;
use leanburn::memory::{Bytes, CountingAllocator, Measurement};
use leanburn::train::task::Builds;
use leanburn::train::{
    Backend, BackendKind, Images, Recipe, Settings, Text, Trainer, choose, predict, text::TextFacts,
};
use serde_json::{Value, json};

#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();

/// Predict and measure the peak of every combination of model, precision, checkpoint policy, optimizer and
/// batch, on the CPU each in a process of its own, and write the signed errors.
#[derive(Parser)]
struct Args {
    /// One of every five combinations.
    #[arg(long)]
    quick: bool,
    /// Of these models only: resnet18, resnet50, gpt-tiny, gpt-12, encoder.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    models: Vec<String>,
    /// flex, wgpu, vulkan or cuda.
    #[arg(long, value_name = "NAME", default_value = "flex")]
    backend: Backend,
    /// Where the table goes; docs/accuracy.md has that of a whole run.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
    /// Run only this combination and print it.
    #[arg(long, value_name = "N", hide = true)]
    case: Option<usize>,
}

/// Shares no factor with the lengths of the lists, so that every value of each comes up.
const QUICK: usize = 5;

/// A training step.
#[derive(Clone, Debug)]
struct Case {
    model: &'static str,
    precision: &'static str,
    checkpoint: &'static str,
    optimizer: &'static str,
    batch: usize,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let models = [
        ("resnet18", "f16", [8, 32]),
        ("resnet50", "bf16", [4, 16]),
        ("gpt-tiny", "bf16", [4, 16]),
        ("gpt-12", "f16", [2, 8]),
        ("encoder", "bf16", [4, 16]),
    ];
    for (model, half, batches) in models {
        for precision in ["fp32", half] {
            for checkpoint in ["none", "every-block", "sqrt", "cheap"] {
                for optimizer in ["sgd", "adamw"] {
                    cases.extend(batches.map(|batch| Case {
                        model,
                        precision,
                        checkpoint,
                        optimizer,
                        batch,
                    }));
                }
            }
        }
    }
    cases
}

fn main() -> Result<()> {
    let args = Args::parse();
    let cases = cases();
    if let Some(index) = args.case {
        println!("{}", cases[index].run(args.backend)?);
        return Ok(());
    }
    let step = match args.quick {
        true => QUICK,
        false => 1,
    };
    let mut results = Vec::new();
    let wanted = |index: &usize| {
        args.models.is_empty() || args.models.iter().any(|model| model == cases[*index].model)
    };
    for index in (0..cases.len()).filter(wanted).step_by(step) {
        // A GPU's kernels are tuned once a process, and its pool tells what is in use.
        let result = match args.backend.kind {
            BackendKind::Flex => in_a_process(index, args.backend)?,
            _ => cases[index].run(args.backend)?,
        };
        eprintln!("{}", line(&result));
        results.push(result);
    }
    let summary = summary(&results);
    match &args.output {
        Some(path) => std::fs::write(path, document(&results, &summary, args.backend))?,
        None if args.json => {}
        None => println!("{}", headline(&summary)),
    }
    if args.json {
        println!("{summary}");
    }
    Ok(())
}

/// What a process keeps of one run must not count in the next.
fn in_a_process(index: usize, backend: Backend) -> Result<Value> {
    let output = Command::new(std::env::current_exe()?)
        .args([
            "--case",
            &index.to_string(),
            "--backend",
            &backend.to_string(),
        ])
        .output()?;
    if !output.status.success() {
        bail!(
            "{:?}: {}",
            cases()[index],
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Case {
    fn run(&self, backend: Backend) -> Result<Value> {
        let (predicted, measured) = match self.model {
            "resnet18" | "resnet50" => {
                let mut recipe = self.recipe::<Images>()?;
                recipe.model.depth = self.model[6..].parse().map_err(anyhow::Error::msg)?;
                recipe.data.image_size = 64;
                both(&recipe, &10, backend)?
            }
            _ => {
                let mut recipe = self.recipe::<Text>()?;
                let model = &mut recipe.model;
                match self.model {
                    "gpt-tiny" => model.preset = "tiny".parse().map_err(anyhow::Error::msg)?,
                    "gpt-12" => {
                        model.preset = "small".parse().map_err(anyhow::Error::msg)?;
                        (model.heads, model.width) = (Some(4), Some(128));
                    }
                    _ => {
                        model.preset = "bert-base".parse().map_err(anyhow::Error::msg)?;
                        (model.layers, model.heads, model.width) = (Some(4), Some(4), Some(256));
                    }
                }
                recipe.data.context = 128;
                let facts = TextFacts {
                    tokens: 256,
                    bytes_per_token: 1.0,
                };
                both(&recipe, &facts, backend)?
            }
        };
        let error = predicted.peak.0 as f64 / measured.peak.0 as f64 - 1.0;
        Ok(json!({
            "model": self.model, "precision": self.precision, "checkpoint": self.checkpoint,
            "optimizer": self.optimizer, "batch": self.batch, "phase": measured.phase,
            "predicted": predicted.peak.0, "measured": measured.peak.0, "error": error,
        }))
    }

    fn recipe<T: Builds>(&self) -> Result<Recipe<T>> {
        let mut recipe = Recipe::<T>::default();
        recipe.train.batch = self.batch;
        recipe.precision.policy = self.precision.into();
        recipe.checkpoint = self.checkpoint.parse()?;
        recipe.optimizer.name = self.optimizer.parse().map_err(anyhow::Error::msg)?;
        Ok(recipe)
    }
}

/// Predicts a step, and takes it for real.
fn both<T: Builds>(
    recipe: &Recipe<T>,
    facts: &T::Facts,
    backend: Backend,
) -> Result<(Measurement, Measurement)> {
    let device = choose(backend)?.device;
    // A device that lacks one half type has the other; their bytes are the same.
    let policy = Policy::resolve(&recipe.precision.policy, &device)
        .or_else(|_| Policy::resolve("f16", &device))?;
    let predicted = predict(recipe, facts, policy, backend)?.step();
    let device = device.autodiff();
    let mut trainer = Trainer::bare(Settings::of(recipe), &device, || {
        let network = T::init(recipe, facts, &device).expect("the prediction has built it");
        T::with_levers(recipe, policy, network)
    })?;
    for _ in 0..3 {
        trainer.micro_step(T::blank(recipe, facts, &device));
        trainer.update()?;
    }
    let measured = trainer.measurement().cloned();
    Ok((
        predicted,
        measured.context("this backend does not report its memory")?,
    ))
}

fn error_of(result: &Value) -> f64 {
    result["error"].as_f64().unwrap_or(f64::NAN)
}

fn summary(results: &[Value]) -> Value {
    let mut errors: Vec<f64> = results
        .iter()
        .map(|result| error_of(result).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    json!({
        "settings": results.len(),
        "median_abs_error": errors.get(errors.len() / 2),
        "worst_abs_error": errors.last(),
        "cases": results,
    })
}

fn headline(summary: &Value) -> String {
    let percent = |key: &str| 100.0 * summary[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "{} settings: median absolute error {:.2} %, worst {:.2} %",
        summary["settings"],
        percent("median_abs_error"),
        percent("worst_abs_error"),
    )
}

fn bytes(result: &Value, side: &str) -> Bytes {
    Bytes(result[side].as_u64().unwrap_or_default())
}

fn line(result: &Value) -> String {
    let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {:+.2} % |",
        text("model"),
        text("precision"),
        text("checkpoint"),
        text("optimizer"),
        result["batch"],
        text("phase"),
        bytes(result, "predicted"),
        bytes(result, "measured"),
        100.0 * error_of(result),
    )
}

fn document(results: &[Value], summary: &Value, backend: Backend) -> String {
    let mut text = format!("{}, on {backend}.\n\n", headline(summary));
    text += "| model | precision | checkpoint | optimizer | batch | peak in | predicted | measured | error |\n";
    text += "|---|---|---|---|---|---|---|---|---|\n";
    for result in results {
        text += &line(result);
        text += "\n";
    }
    text
}
