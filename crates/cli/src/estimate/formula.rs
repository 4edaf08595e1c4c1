//! Closed formulas for Transformers.

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::formulas::{ModelStates, Setup, Transformer};
use leanburn_memory::{Catalogue, Measurement, Phase, Table, to_json};
use serde_json::json;

use super::Args;
use crate::budget;
use crate::print::out;

/// What a device of the first pipeline stage needs.
pub fn run(args: &Args, transformer: &Transformer) -> Result<ExitCode> {
    let mut states = ModelStates::default();
    if let Some(optimizer) = &args.step.optimizer {
        states.optimizer = optimizer.parse()?;
    }
    states.convention = args.states.unwrap_or(states.convention);
    states.zero = args.zero.unwrap_or(states.zero);
    let setup = Setup {
        transformer: *transformer,
        parallel: args.parallel.unwrap_or_default(),
        recompute: args.recompute.unwrap_or_default(),
        batch: args.step.batch.unwrap_or(1) as u64,
        states,
    };
    let estimate = setup.estimate()?;
    let step = Measurement {
        phase: Phase::Backward,
        peak: estimate.total(),
        kept_after_forward: None,
        rows: estimate.ledger().clone(),
    };
    let catalogue = Catalogue::builtin();
    let card = budget::card(&catalogue, args.device.as_deref())?;
    let budget = budget::budget(card, args.memory, true);
    let fits = budget.as_ref().map(|budget| budget.fits(step.peak));
    if args.json {
        let object = json!({
            "model": "transformer", "batch": setup.batch, "method": "formula",
            "memory": to_json(Some(&step), None), "explain": estimate.explain(),
            "fits": fits.map(|fit| fit.is_sure()),
        });
        out(&format!("{object}\n"))?;
        return Ok(budget::exit_code(fits));
    }
    let table = Table {
        predicted: Some(&step),
        measured: None,
        fp32: None,
    };
    let mut text = format!("{table}\nby closed formulas; --explain prints each with its source\n");
    if args.explain {
        text += &format!("\n{}\n", estimate.explain().join("\n"));
    }
    if let Some((budget, fit)) = budget.zip(fits) {
        text += &format!("{}\n", budget.verdict(fit));
    }
    out(&text)?;
    Ok(budget::exit_code(fits))
}
