//! A plan for people and for programs.

use std::path::PathBuf;

use anyhow::Result;
use leanburn_memory::Bytes;
use leanburn_train::task::Builds;
use leanburn_train::{Plan, Recipe};
use serde_json::{Value, json};

use crate::subject::Subject;

pub fn text<T: Builds>(
    plan: &Plan<T>,
    subject: &Subject<T>,
    written: Option<&PathBuf>,
) -> Result<String> {
    let budget = &plan.budget;
    let mut text = format!(
        "{}\nneeds {}; {} can be used of {}\n\n",
        subject.title(),
        plan.before,
        budget.usable(),
        budget.told(),
    );
    for (number, step) in plan.steps.iter().enumerate() {
        text += &format!(
            "{}. {}\n   saves {}, {} needed; {}\n",
            number + 1,
            step.lever,
            signed(step.saves),
            step.needed,
            step.told_costs(),
        );
    }
    if plan.steps.is_empty() {
        text += match plan.fit().is_sure() {
            true => "nothing to do: it fits as it is\n",
            false => "no lever saves anything\n",
        };
    }
    text += &format!("\n{}\n", budget.verdict(plan.fit()));
    if let Some(refused) = &plan.prediction.refused {
        text += &format!("{refused}\n");
    } else if !plan.fit().is_sure() {
        text += &format!(
            "this is the leanest recipe; the smallest memory for it is {}, which is {} more\n",
            plan.smallest_budget(),
            missing(plan),
        );
    }
    if let Some(path) = written {
        let changed = Subject {
            recipe: plan.recipe.clone(),
            ..subject.clone()
        };
        text += &format!("{}: {}\n", path.display(), changed.title());
    } else {
        text += &format!("\n{}", toml(&plan.recipe)?);
    }
    Ok(text)
}

pub fn json<T: Builds>(plan: &Plan<T>, subject: &Subject<T>) -> Result<Value> {
    let steps = plan.steps.iter().map(|step| {
        json!({
            "lever": step.lever, "saves": step.saves, "costs": step.costs, "slower": step.slower,
            "peak": step.needed.0,
        })
    });
    let fits = plan.fit().is_sure();
    Ok(json!({
        "model": T::model_name(&subject.recipe.model),
        "backend": subject.backend.to_string(),
        "budget": plan.budget.memory.0,
        "head_room": plan.budget.head_room().0,
        "fits": fits,
        "before": plan.before.0,
        "peak": { "predicted": plan.prediction.needed().0 },
        "refused": plan.prediction.refused,
        "smallest_budget": plan.smallest_budget().0,
        "missing": (!fits).then(|| missing(plan).0),
        "seconds_at_best": plan.seconds,
        "steps": steps.collect::<Vec<_>>(),
        "recipe": serde_json::to_value(&plan.recipe)?,
    }))
}

pub fn toml<T: Builds>(recipe: &Recipe<T>) -> Result<String> {
    Ok(toml::to_string_pretty(recipe)?)
}

fn missing<T: Builds>(plan: &Plan<T>) -> Bytes {
    let smallest = plan.smallest_budget().0;
    Bytes(smallest.saturating_sub(plan.budget.memory.0))
}

fn signed(bytes: i64) -> String {
    let size = Bytes(bytes.unsigned_abs());
    if bytes < 0 {
        format!("-{size}")
    } else {
        size.to_string()
    }
}
