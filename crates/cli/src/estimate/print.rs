//! A prediction for people and for programs.

use leanburn_memory::trace::Runtime;
use leanburn_memory::{Budget, Bytes, Prediction, Table, to_json};
use leanburn_train::runtime;
use leanburn_train::task::Builds;
use serde_json::{Value, json};

use crate::subject::Subject;

pub fn text<T: Builds>(
    prediction: &Prediction,
    subject: &Subject<T>,
    budget: Option<&Budget>,
) -> String {
    let step = prediction.step();
    let table = Table {
        predicted: Some(&step),
        measured: None,
        fp32: None,
    };
    let mut text = format!("{}\n{}\n\n{table}", subject.title(), prediction.remark());
    text += "\nlargest tensors at the peak\n";
    for one in &prediction.largest {
        let bytes = one.bytes.to_string();
        text += &format!(
            "{bytes:>12}  {:<16} {:<40} {}\n",
            one.row, one.tensor, one.layer
        );
    }
    text += &format!("\n{}\n", excluded(runtime(subject.backend)));
    if prediction.needed() > prediction.peak {
        let needed = prediction.needed();
        text += &format!(
            "the device must have {needed}: the peak, seen between blocks, and the allocator\n"
        );
    }
    if let Some(highest) = between(prediction) {
        text += &format!("inside a block, for a moment, {highest} of that are in use\n");
    }
    if let Some(refusal) = &prediction.refused {
        text += &format!("does not fit, whatever the memory: {refusal}\n");
    } else if let Some(budget) = budget {
        text += &format!("{}\n", budget.verdict(budget.holds(prediction)));
    }
    text
}

/// A pool is looked at between blocks; inside of one, more may be in use.
fn between(prediction: &Prediction) -> Option<Bytes> {
    let operations = prediction.timeline.iter();
    let highest = operations.map(|rows| Bytes(rows.iter().sum())).max()?;
    (highest > prediction.peak).then_some(highest)
}

/// Trap B29: a total says what it leaves out.
fn excluded(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Flex => "not included: the program itself, and what loads and decodes the data",
        _ => {
            "not included: driver, context and kernels (framework), and scratch of the first step's autotune"
        }
    }
}

pub fn json<T: Builds>(
    prediction: &Prediction,
    subject: &Subject<T>,
    budget: Option<&Budget>,
) -> Value {
    let recipe = &subject.recipe;
    let largest = prediction.largest.iter();
    let largest = largest.map(|one| {
        json!({ "tensor": one.tensor, "layer": one.layer, "row": one.row.key(), "bytes": one.bytes.0 })
    });
    let mut object = json!({
        "model": T::model_name(&recipe.model),
        "backend": subject.backend.to_string(),
        "precision": subject.policy().ok().map(|policy| policy.compute.name()),
        "checkpoint": recipe.checkpoint.to_string(),
        "offload": recipe.offload.name(),
        "batch": recipe.train.batch,
        "accumulate": recipe.train.accumulate,
        "optimizer": recipe.optimizer.name.name(),
        "memory": to_json(Some(&prediction.step()), None),
        "method": prediction.method.name(),
        "confidence": prediction.confidence.map(|c| json!({ "median": c.median, "worst": c.worst })),
        "arithmetic": prediction.arithmetic(),
        "fits": budget.map(|budget| budget.holds(prediction).is_sure()),
        "budget": budget.map(|budget| budget.memory.0),
        "head_room": budget.map(|budget| budget.head_room().0),
        "needed": prediction.needed().0,
        "refused": prediction.refused,
        "between_marks": between(prediction).map(|bytes| bytes.0),
        "largest": largest.collect::<Vec<_>>(),
    });
    for (name, fact) in T::facts(recipe) {
        object[name] = fact;
    }
    object
}
