//! Whether a step fits, before it starts.

use leanburn_memory::{Bytes, Prediction};

use crate::levers::{Pulled, Target, pull};
use crate::task::Builds;
use crate::{Chosen, Job, Recipe, TrainError};

/// How many levers a refusal names.
const NAMED: usize = 3;

/// Refuses a step that the device cannot hold, with the cheapest levers that would make it fit.
pub(crate) fn check<T: Builds>(job: &Job<T>, predicted: &Prediction) -> Result<(), TrainError> {
    let free = free(&job.chosen);
    let fits = |prediction: &Prediction| {
        prediction.refused.is_none() && free.is_none_or(|free| prediction.needed() <= free)
    };
    if fits(predicted) {
        return Ok(());
    }
    let policy = |recipe: &Recipe<T>| recipe.policy(&job.chosen.device);
    let target = Target {
        facts: &T::facts_of(&job.loaders),
        backend: job.chosen.backend,
        policy: &policy,
    };
    let mut pulled = pull(&job.recipe, predicted, &target)?;
    pulled.retain(|pulled| fits(&pulled.prediction));
    Err(TrainError::Room(format!(
        "{}; {}; --force starts it anyway",
        reason(predicted, free),
        advice(pulled)
    )))
}

fn reason(predicted: &Prediction, free: Option<Bytes>) -> String {
    match (&predicted.refused, free) {
        (Some(refused), _) => format!("this backend cannot hold the step: {refused}"),
        (None, free) => format!(
            "the step needs {} and {} are free",
            predicted.needed(),
            free.unwrap_or_default()
        ),
    }
}

/// The levers that compute least, of those that are enough.
fn advice(mut enough: Vec<Pulled>) -> String {
    let computes = |pulled: &Pulled| pulled.arithmetic.unwrap_or(f64::INFINITY);
    enough.sort_by(|a, b| computes(a).total_cmp(&computes(b)));
    let named = enough.iter().take(NAMED).map(|one| {
        let more = one.arithmetic.map_or(String::new(), |more| {
            format!(", computes {:+.0} %", 100.0 * more)
        });
        format!("{} ({}{more})", one.lever, one.needed)
    });
    match named.collect::<Vec<_>>() {
        none if none.is_empty() => {
            "no single lever is enough, see `leanburn estimate --levers` for what each saves".into()
        }
        levers => format!("it would fit with {}", levers.join(", or ")),
    }
}

/// What the device has left; `None` where nobody says.
fn free(chosen: &Chosen) -> Option<Bytes> {
    let space = chosen.properties().space?;
    Some(space.free.unwrap_or(space.total))
}

#[cfg(test)]
mod tests {
    use super::*;
    use leanburn_memory::{Ledger, Measurement, Phase};

    fn needs(peak: u64) -> Prediction {
        Prediction::from(Measurement {
            phase: Phase::Forward,
            peak: Bytes(peak),
            kept_after_forward: None,
            rows: Ledger::default(),
        })
    }

    fn lever(lever: &'static str, arithmetic: Option<f64>) -> Pulled {
        Pulled {
            lever,
            price: "none",
            needed: Bytes(1 << 20),
            saves: 1,
            arithmetic,
            prediction: needs(1 << 20),
        }
    }

    #[test]
    fn the_cheapest_levers_are_named_first_and_no_more_than_three() {
        let costs = [Some(0.4), None, Some(0.0), Some(0.1)];
        let names = ["dear", "unknown", "free", "cheap"];
        let levers = names.into_iter().zip(costs);
        let text = advice(levers.map(|(name, cost)| lever(name, cost)).collect());
        let at = |name: &str| text.find(name);
        assert!(
            at("free") < at("cheap") && at("cheap") < at("dear"),
            "{text}"
        );
        assert_eq!(at("unknown"), None);
        assert!(advice(Vec::new()).contains("no single lever"));
    }

    #[test]
    fn a_refusal_says_what_is_needed_and_what_there_is() {
        let text = reason(&needs(3 << 30), Some(Bytes(1 << 30)));
        assert_eq!(text, "the step needs 3.00 GiB and 1.00 GiB are free");
        let mut refused = needs(1);
        refused.refused = Some("a tensor of 5 GiB".into());
        assert!(reason(&refused, None).contains("a tensor of 5 GiB"));
    }
}
