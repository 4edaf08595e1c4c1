//! The `memory` object of machine-readable results.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{Bytes, Ledger, Measurement, Phase, Row};

/// The `memory` object: bytes are integers, and what is not known is `null`, never 0.
///
/// `phase` is the measured one, or the predicted one where nothing was measured.
pub fn to_json(predicted: Option<&Measurement>, measured: Option<&Measurement>) -> Value {
    let pair = |read: &dyn Fn(&Measurement) -> Option<Bytes>| json!({ "predicted": predicted.and_then(read), "measured": measured.and_then(read) });
    let rows: Map<String, Value> = Row::ALL
        .into_iter()
        .map(|row| (row.key().to_owned(), pair(&|side| side.rows.get(row))))
        .collect();
    json!({
        "phase": measured.or(predicted).map(|side| side.phase),
        "peak": pair(&|side| Some(side.peak)),
        "kept_after_forward": pair(&|side| side.kept_after_forward),
        "rows": rows,
    })
}

/// What [`to_json`] wrote, predicted and measured; `None` where a side was not there.
pub fn sides(memory: &Value) -> [Option<Measurement>; 2] {
    ["predicted", "measured"].map(|side| {
        let bytes = |entry: &Value| entry[side].as_u64().map(Bytes);
        let mut rows = Ledger::default();
        for row in Row::ALL {
            rows.set(row, bytes(&memory["rows"][row.key()]));
        }
        Some(Measurement {
            phase: Phase::deserialize(&memory["phase"]).ok()?,
            peak: bytes(&memory["peak"])?,
            kept_after_forward: bytes(&memory["kept_after_forward"]),
            rows,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(phase: Phase, peak: u64) -> Measurement {
        Measurement {
            phase,
            peak: Bytes(peak),
            kept_after_forward: None,
            rows: Ledger::default().with(Row::OptimizerState, Bytes(7)),
        }
    }

    #[test]
    fn only_measured() {
        let memory = to_json(None, Some(&step(Phase::Backward, 100)));
        let unknown = json!({ "predicted": null, "measured": null });
        assert_eq!(memory["phase"], "backward");
        assert_eq!(
            memory["peak"],
            json!({ "predicted": null, "measured": 100 })
        );
        assert_eq!(memory["kept_after_forward"], unknown);
        assert_eq!(
            memory["rows"]["optimizer_state"],
            json!({ "predicted": null, "measured": 7 })
        );
        assert_eq!(memory["rows"]["framework"], unknown);
        assert_eq!(memory["rows"].as_object().unwrap().len(), Row::ALL.len());
    }

    #[test]
    fn what_was_written_is_read() {
        let (predicted, measured) = (step(Phase::Update, 90), step(Phase::Update, 100));
        let both = sides(&to_json(Some(&predicted), Some(&measured)));
        assert_eq!(both, [Some(predicted), Some(measured.clone())]);
        let one = sides(&to_json(None, Some(&measured)));
        assert_eq!(one, [None, Some(measured)]);
        assert_eq!(sides(&Value::Null), [None, None]);
    }

    #[test]
    fn both_sides_and_neither() {
        let (predicted, measured) = (step(Phase::Update, 90), step(Phase::Forward, 100));
        let memory = to_json(Some(&predicted), Some(&measured));
        assert_eq!(memory["phase"], "forward");
        assert_eq!(memory["peak"], json!({ "predicted": 90, "measured": 100 }));
        assert_eq!(to_json(Some(&predicted), None)["phase"], "update");
        assert_eq!(to_json(None, None)["phase"], Value::Null);
    }
}
