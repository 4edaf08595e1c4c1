//! Whether a step fits, before it starts.

use leanburn_memory::{Budget, Bytes, Prediction};

use crate::levers::{Pulled, Target, pull};
use crate::plan::{Keep, Planner, rates};
use crate::predict::runtime;
use crate::task::Builds;
use crate::{Chosen, Job, Recipe, TrainError};

/// How many levers a refusal names.
const NAMED: usize = 3;
/// Beyond this many times the free memory levers are not tried: each is predicted, and such a step is a large one.
const TRIED: u64 = 16;

/// Refuses a step that the device cannot hold, with the cheapest levers that would make it fit.
pub(crate) fn check<T: Builds>(job: &Job<T>, predicted: &Prediction) -> Result<(), TrainError> {
    let room = Room::of(&job.chosen);
    let Some(reason) = room.refuses(predicted) else {
        return Ok(());
    };
    let policy = |recipe: &Recipe<T>| recipe.policy(&job.chosen.device);
    let target = Target {
        facts: &T::facts_of(&job.loaders),
        backend: job.chosen.backend,
        policy: &policy,
    };
    let mut pulled = match room.is_hopeless(predicted) {
        true => Vec::new(),
        false => {
            eprintln!("{reason}; looking for levers that would make it fit");
            pull(&job.recipe, predicted, &target)?
        }
    };
    pulled.retain(|pulled| room.refuses(&pulled.prediction).is_none());
    Err(TrainError::Room(format!(
        "{reason}; {}; --force starts it anyway",
        advice(pulled)
    )))
}

/// The recipe, with levers pulled until it fits into the memory that it names.
pub(crate) fn planned<T: Builds>(
    recipe: Recipe<T>,
    chosen: &Chosen,
) -> Result<Recipe<T>, TrainError> {
    let Some(memory) = recipe.memory else {
        return Ok(recipe);
    };
    let backend = chosen.backend;
    let budget = Budget::of(memory, runtime(backend).has_pool());
    let policy = |recipe: &Recipe<T>| recipe.policy(&chosen.device);
    let target = Target {
        facts: &T::data_facts(&recipe)?,
        backend,
        policy: &policy,
    };
    let planner = Planner::new(target, Keep::default(), rates(backend));
    let plan = planner.plan(&recipe, &budget)?;
    for step in &plan.steps {
        let costs = step.told_costs();
        eprintln!("plan: {}: {} needed; {costs}", step.lever, step.needed);
    }
    match plan.fit().is_sure() {
        true => Ok(plan.recipe),
        false => Err(TrainError::Room(format!(
            "no recipe fits into memory = {memory}: the leanest step needs {}, for which memory = {} is enough; it is: \
             checkpoint {}, {}",
            plan.prediction.needed(),
            plan.smallest_budget(),
            plan.recipe.checkpoint,
            plan.recipe.window(),
        ))),
    }
}

/// What the device has left; `None` where nobody says.
struct Room {
    free: Option<Bytes>,
    largest: Option<Bytes>,
}

impl Room {
    fn of(chosen: &Chosen) -> Self {
        let properties = chosen.properties();
        Self {
            free: properties
                .space
                .map(|space| space.free.unwrap_or(space.total)),
            largest: properties.largest,
        }
    }

    /// Whether levers are not even tried.
    fn is_hopeless(&self, predicted: &Prediction) -> bool {
        let free = self.free.unwrap_or(predicted.needed());
        predicted.needed().0 / TRIED > free.0
    }

    /// Why a step does not fit.
    fn refuses(&self, predicted: &Prediction) -> Option<String> {
        if let Some(refused) = &predicted.refused {
            return Some(format!("this backend cannot hold the step: {refused}"));
        }
        let largest = predicted.largest.iter().max_by_key(|one| one.bytes);
        if let Some((one, most)) = largest
            .zip(self.largest)
            .filter(|(one, most)| one.bytes > *most)
        {
            return Some(format!(
                "{} ({}) takes {}, and the device's largest allocation is {most}",
                one.tensor, one.layer, one.bytes
            ));
        }
        let (needed, free) = (predicted.needed(), self.free?);
        (needed > free).then(|| format!("the step needs {needed} and {free} are free"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use leanburn_memory::{Largest, Ledger, Measurement, Phase, Row};

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
        let room = Room {
            free: Some(Bytes(1 << 30)),
            largest: None,
        };
        let text = room.refuses(&needs(3 << 30)).unwrap();
        assert_eq!(text, "the step needs 3.00 GiB and 1.00 GiB are free");
        assert_eq!(room.refuses(&needs(1 << 30)), None);
        let mut refused = needs(1);
        refused.refused = Some("a tensor of 5 GiB".into());
        assert!(
            room.refuses(&refused)
                .unwrap()
                .contains("a tensor of 5 GiB")
        );
    }

    /// Traps B42 and B44: every tensor is held against the adapter's limit, in 64 bits, and named.
    #[test]
    fn a_tensor_above_the_largest_allocation_is_named() {
        let mut step = needs(5 << 30);
        step.largest.push(Largest {
            tensor: "matmul f32 [2, 536870913]".into(),
            layer: "head".into(),
            row: Row::Activations,
            bytes: Bytes((1 << 32) + 4),
        });
        let room = |largest| Room {
            free: None,
            largest: Some(Bytes(largest)),
        };
        let text = room(128 << 20).refuses(&step).unwrap();
        assert!(text.contains("matmul") && text.contains("head"), "{text}");
        assert!(text.contains("128.0 MiB"), "{text}");
        assert!(room(1 << 32).refuses(&step).is_some());
        assert_eq!(room((1 << 32) + 4).refuses(&step), None);
    }
}
