//! What came of it, for people and for programs.

use std::path::Path;

use leanburn_compress::Granularity;
use leanburn_memory::Bytes;
use leanburn_memory::table::{align, size};
use leanburn_train::quantize::{Judgement, Quantizes, side_by_side};
use leanburn_train::task::Loaders;
use leanburn_train::{Job, Task};
use serde_json::{Value, json};

use super::measure::{LayerOutcome, Outcome};

/// The tables.
pub fn text<T: Quantizes>(job: &Job<T>, outcome: &Outcome) -> String {
    let mut text = format!(
        "{} on {}: {}\n\n{}",
        T::model_name(&job.recipe.model),
        job.loaders.name(),
        what(outcome),
        align(&side_by_side::<T>(&outcome.float, &outcome.int8)),
    );
    if !outcome.in_float.is_empty() {
        text += &format!("\nin float: {}\n", outcome.in_float.join(", "));
    }
    for kept in &outcome.kept {
        text += &format!(
            "with {} in float: {}\n",
            kept.layer,
            T::tell(&kept.judgement.score)
        );
    }
    let quantized = outcome.layers.len();
    if outcome.worst.is_empty() {
        return text;
    }
    text += &format!(
        "\nthe worst of {quantized} layers, by the noise in their output\n{}",
        align(&worst::<T>(outcome)),
    );
    text
}

/// What was done, in a line.
fn what(outcome: &Outcome) -> String {
    let each = match outcome.settings.granularity {
        Granularity::Channel => "channel",
        Granularity::Tensor => "tensor",
    };
    let inputs = match outcome.settings.method {
        None => "inputs in float".to_owned(),
        Some(method) => format!(
            "inputs by {method} of {} samples, {} arithmetic",
            outcome.calibrated,
            outcome.arithmetic.name(),
        ),
    };
    let smooth = outcome
        .smooth
        .map_or(String::new(), |alpha| format!(", smoothed by {alpha}"));
    format!("int8 weights with a scale per {each}, {inputs}{smooth}")
}

fn worst<T: Quantizes>(outcome: &Outcome) -> Vec<Vec<String>> {
    let head = [
        "",
        "weight",
        "output",
        "input from",
        "to",
        "clipped",
        "in float",
    ];
    let mut lines = vec![head.map(String::from).to_vec()];
    let now = &outcome.int8.judgement.score;
    for (path, judgement) in &outcome.worst {
        let layer = outcome
            .layers
            .iter()
            .find(|layer| layer.report.layer.path == *path);
        let Some(LayerOutcome { report, output }) = layer else {
            continue;
        };
        let db = |sqnr: f64| format!("{sqnr:.1} dB");
        let mut line = vec![
            path.clone(),
            db(report.weight.sqnr()),
            output.map_or(String::new(), db),
        ];
        line.extend(match report.input {
            Some(input) => [
                format!("{:.3}", input.range.low()),
                format!("{:.3}", input.range.high()),
                format!("{:.3} %", 100.0 * input.saturated),
            ],
            None => [const { String::new() }; 3],
        });
        line.push(T::MEASURE.change(now, &judgement.score));
        lines.push(line);
    }
    lines
}

/// The same, machine-readable.
pub fn json<T: Quantizes>(job: &Job<T>, outcome: &Outcome) -> Value {
    let measure = |judgement: &Judgement| (T::MEASURES[0].1)(&judgement.score);
    let key = T::MEASURES[0].0;
    let finite = |number: f64| number.is_finite().then_some(number);
    let layers = outcome
        .layers
        .iter()
        .map(|LayerOutcome { report, output }| {
            json!({
                "layer": report.layer.path,
                "kind": report.layer.kind,
                "weight_sqnr": finite(report.weight.sqnr()),
                "worst_channel_sqnr": finite(report.worst_channel),
                "output_sqnr": output.and_then(finite),
                "input": report.input.map(|input| json!({
                    "least": input.seen.0, "most": input.seen.1,
                    "low": input.range.low(), "high": input.range.high(),
                    "saturated": input.saturated,
                })),
            })
        });
    let left =
        |layer: &str, judgement: &Judgement| json!({ "layer": layer, key: measure(judgement) });
    let kept = outcome
        .kept
        .iter()
        .map(|kept| left(&kept.layer, &kept.judgement));
    let worst = outcome
        .worst
        .iter()
        .map(|(layer, judgement)| left(layer, judgement));
    json!({
        "model": T::model_name(&job.recipe.model),
        "backend": job.chosen.backend.to_string(),
        "data": job.loaders.name(),
        "batch": job.recipe.train.batch,
        "scales": outcome.settings.granularity,
        "method": outcome.settings.method.map(|method| method.to_string()),
        "calibrated": outcome.calibrated,
        "smooth": outcome.smooth,
        "arithmetic": outcome.settings.method.map(|_| outcome.arithmetic.name()),
        "f32": outcome.float.to_json::<T>(),
        "int8": outcome.int8.to_json::<T>(),
        "agreement": outcome.int8.judgement.agreement(&outcome.float.judgement),
        "layers": layers.collect::<Vec<_>>(),
        "in_float": outcome.in_float,
        "kept_float": kept.collect::<Vec<_>>(),
        "worst": worst.collect::<Vec<_>>(),
    })
}

/// A network that was quantized before.
pub fn loaded<T: Task>(
    as_json: bool,
    path: &Path,
    resident: Option<Bytes>,
    judgement: &Judgement,
) -> String {
    if as_json {
        let mut json = json!({
            "loss": judgement.score.loss(),
            "resident_bytes": resident.map(|bytes| bytes.0),
        });
        for (key, of) in T::MEASURES {
            json[*key] = of(&judgement.score).into();
        }
        return format!("{json}\n");
    }
    let score = &judgement.score;
    format!(
        "{}: {}, loss {:.4}, {} in memory\n",
        path.display(),
        T::tell(score),
        score.loss(),
        size(resident),
    )
}
