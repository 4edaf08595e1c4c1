//! What the backends did, side by side.

use leanburn_memory::{Measurement, Prediction, to_json};
use leanburn_train::Backend;
use serde_json::{Value, json};

use crate::child::Failure;
use crate::child::Ran;

/// One backend.
pub struct Side {
    pub backend: Backend,
    /// Recipe and dtypes in a few words.
    pub title: String,
    /// With the operations of the step, where they are drawn or the backend failed; the backend itself predicts too.
    pub traced: Option<Prediction>,
    pub result: Result<Ran, Failure>,
}

/// All of them.
pub struct Comparison {
    pub title: String,
    pub batch: usize,
    pub accumulate: usize,
    pub steps: u64,
    pub sides: Vec<Side>,
}

impl Side {
    /// What its step takes, predicted and measured; `None` where nobody says.
    pub fn steps(&self) -> [Option<Measurement>; 2] {
        match &self.result {
            Ok(ran) => leanburn_memory::json::sides(&ran.memory),
            Err(_) => [self.traced.as_ref().map(Prediction::step), None],
        }
    }

    fn to_json(&self, reference: Option<&Ran>) -> Value {
        let mut object = json!({ "backend": self.backend.to_string() });
        let ran = match &self.result {
            Ok(ran) => ran,
            Err(failure) => {
                object["error"] = json!(failure.reason);
                object["out_of_memory"] = json!(failure.out_of_memory);
                object["last_mark"] = json!(failure.last_mark);
                object["memory"] = to_json(self.steps()[0].as_ref(), None);
                return object;
            }
        };
        let difference = reference.and_then(|reference| largest_difference(ran, reference));
        let points = ran.points.iter();
        let points = points.map(|p| json!({ "at": p.at, "live": p.live, "peak": p.peak }));
        for (key, value) in [
            ("device", json!(ran.device)),
            ("driver", json!(ran.driver)),
            ("precision", json!(ran.precision)),
            ("skipped_steps", json!(ran.skipped_steps)),
            ("losses", json!(ran.losses)),
            ("largest_loss_difference", json!(difference)),
            ("seconds", json!(ran.seconds)),
            ("first_step_seconds", json!(ran.seconds.first())),
            ("seconds_per_step", json!(ran.seconds_per_step)),
            ("memory", ran.memory.clone()),
            ("reserved", json!(ran.reserved)),
            ("points", points.collect()),
        ] {
            object[key] = value;
        }
        object
    }
}

impl Comparison {
    /// The first that ran: the others' losses are compared with its.
    pub fn reference(&self) -> Option<&Ran> {
        self.sides.iter().find_map(|side| side.result.as_ref().ok())
    }

    /// One object.
    pub fn to_json(&self) -> Value {
        let reference = self.reference();
        let sides = self.sides.iter().map(|side| side.to_json(reference));
        json!({
            "model": self.title,
            "batch": self.batch,
            "accumulate": self.accumulate,
            "steps": self.steps,
            "backends": sides.collect::<Vec<_>>(),
        })
    }
}

/// The largest difference of two runs' losses, step by step, as a fraction of the reference's; `None` where a
/// loss is no number or the runs are not of one length.
pub fn largest_difference(ran: &Ran, reference: &Ran) -> Option<f64> {
    if ran.losses.len() != reference.losses.len() {
        return None;
    }
    let pairs = ran.losses.iter().zip(&reference.losses);
    let differences = pairs.map(|(loss, of)| {
        let of = (*of)?;
        Some(((*loss)? - of).abs() / of.abs().max(f64::MIN_POSITIVE))
    });
    let differences = differences.collect::<Option<Vec<f64>>>()?;
    differences.into_iter().max_by(f64::total_cmp)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use leanburn_train::BackendKind;

    pub fn ran(losses: &[Option<f64>]) -> Ran {
        Ran {
            device: Some("a device".into()),
            driver: None,
            precision: "fp32".into(),
            skipped_steps: 0,
            losses: losses.to_vec(),
            seconds: vec![9.0, 1.0],
            seconds_per_step: Some(1.0),
            memory: to_json(None, None),
            reserved: Some(5 << 20),
            points: Vec::new(),
        }
    }

    pub fn comparison() -> Comparison {
        let side = |kind: BackendKind, result| Side {
            backend: kind.into(),
            title: "a model".into(),
            traced: None,
            result,
        };
        let failure = Failure {
            reason: "no NVIDIA driver".into(),
            ..Failure::default()
        };
        Comparison {
            title: "a model".into(),
            batch: 2,
            accumulate: 1,
            steps: 2,
            sides: vec![
                side(BackendKind::Cuda, Err(failure)),
                side(BackendKind::Flex, Ok(ran(&[Some(2.0), Some(1.0)]))),
                side(BackendKind::Wgpu, Ok(ran(&[Some(2.0), Some(1.01)]))),
            ],
        }
    }

    #[test]
    fn losses_are_compared_with_the_first_that_ran() {
        let object = comparison().to_json();
        let sides = object["backends"].as_array().unwrap();
        assert_eq!(sides[0]["error"], "no NVIDIA driver");
        assert_eq!(sides[1]["largest_loss_difference"], 0.0);
        let difference = sides[2]["largest_loss_difference"].as_f64().unwrap();
        assert!((difference - 0.01).abs() < 1e-12, "{difference}");
    }

    #[test]
    fn a_loss_that_is_no_number_has_no_difference() {
        let of = |losses: &[Option<f64>]| largest_difference(&ran(losses), &ran(&[Some(1.0); 2]));
        assert_eq!(of(&[Some(1.5), Some(1.0)]), Some(0.5));
        assert_eq!(of(&[None, Some(1.0)]), None);
        assert_eq!(of(&[Some(1.0)]), None);
    }
}
