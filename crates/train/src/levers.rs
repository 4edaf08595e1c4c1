//! What each lever saves: the step predicted again with it pulled.

use leanburn_levers::Policy;
use leanburn_memory::{Bytes, Prediction};

use crate::task::{Builds, Lever};
use crate::{Backend, OptimizerKind, Recipe, TrainError, predict};

/// A lever, pulled.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// Its name, such as `checkpoint cheap`.
    pub lever: &'static str,
    /// What it costs besides time, in words.
    pub price: &'static str,
    /// Bytes that the device must have then.
    pub needed: Bytes,
    /// Bytes less than without it; negative where it takes more.
    pub saves: i64,
    /// How much more the step computes, a fraction; `None` where that is not known.
    pub arithmetic: Option<f64>,
    /// The whole prediction.
    pub prediction: Prediction,
}

/// The price of a smaller micro-batch; a network without BatchNorm does not pay it.
const BATCH: &str = "BatchNorm sees less at a time";

/// More and smaller micro-batches of as many samples, where they divide.
fn split<T: Builds>(recipe: &mut Recipe<T>, parts: usize) {
    if recipe.train.batch.is_multiple_of(parts) {
        recipe.train.batch /= parts;
        recipe.train.accumulate = recipe.train.accumulate.saturating_mul(parts);
    }
}

fn changes<T: Builds>() -> Vec<Lever<T>> {
    fn checkpoint<T: Builds>(recipe: &mut Recipe<T>, policy: &str) {
        recipe.checkpoint = policy.parse().expect("a policy of our own");
    }
    vec![
        (
            "precision bf16",
            "rounding; needs a device with bf16",
            |r| {
                r.precision.policy = "bf16".into();
            },
        ),
        ("checkpoint cheap", "norms and activations again", |r| {
            checkpoint(r, "cheap")
        }),
        (
            "checkpoint every-block",
            "every block's forward again",
            |r| checkpoint(r, "every-block"),
        ),
        ("checkpoint every-block+cheap", "both", |r| {
            checkpoint(r, "every-block+cheap")
        }),
        ("checkpoint sqrt", "every block's forward again", |r| {
            checkpoint(r, "sqrt")
        }),
        ("half the batch, accumulate twice", BATCH, |r| split(r, 2)),
        ("a quarter of the batch, four times", BATCH, |r| split(r, 4)),
        ("optimizer lion", "another optimizer, one moment", |r| {
            r.optimizer.name = OptimizerKind::Lion;
        }),
        ("optimizer sgd", "another optimizer, momentum only", |r| {
            r.optimizer.name = OptimizerKind::Sgd;
        }),
    ]
}

/// Where a changed recipe would run.
pub struct Target<'a, T: Builds> {
    /// What the data say.
    pub facts: &'a T::Facts,
    /// The backend.
    pub backend: Backend,
    /// The dtypes that a recipe has there.
    pub policy: &'a dyn Fn(&Recipe<T>) -> Result<Policy, TrainError>,
}

impl<T: Builds> Target<'_, T> {
    /// What a step takes there.
    pub fn predict(&self, recipe: &Recipe<T>) -> Result<Prediction, TrainError> {
        recipe.validate()?;
        T::check(recipe, self.facts, self.backend)?;
        predict(recipe, self.facts, (self.policy)(recipe)?, self.backend)
    }
}

/// Predicts a recipe once more for every lever that changes it; the largest saving first.
///
/// # Errors
///
/// Those of [`predict`].
pub fn pull<T: Builds>(
    recipe: &Recipe<T>,
    base: &Prediction,
    target: &Target<T>,
) -> Result<Vec<Pulled>, TrainError> {
    let unchanged = (target.policy)(recipe)?;
    let mut pulled = Vec::new();
    for (lever, price, change) in changes::<T>().into_iter().chain(T::levers()) {
        let mut changed = recipe.clone();
        change(&mut changed);
        // A device may lack the dtypes of a lever.
        let Ok(policy) = (target.policy)(&changed) else {
            continue;
        };
        let rest = Recipe {
            precision: recipe.precision.clone(),
            ..changed.clone()
        };
        if policy == unchanged && rest == *recipe {
            continue;
        }
        // A task has a remark where its network looks at a whole micro-batch.
        let price = match price == BATCH && T::window_remark(&changed).is_empty() {
            true => "none",
            false => price,
        };
        let windows = [recipe, &changed].map(|recipe| recipe.train.accumulate as f64);
        let one = Pulled::new(lever, price, base, target.predict(&changed)?, windows);
        if one.saves != 0 {
            pulled.push(one);
        }
    }
    pulled.sort_by_key(|pulled| std::cmp::Reverse(pulled.saves));
    Ok(pulled)
}

impl Pulled {
    /// `windows` are the micro-batches of an update, before and after.
    fn new(
        lever: &'static str,
        price: &'static str,
        base: &Prediction,
        prediction: Prediction,
        windows: [f64; 2],
    ) -> Self {
        let saves = i128::from(base.needed().0) - i128::from(prediction.needed().0);
        let arithmetic = base.arithmetic().zip(prediction.arithmetic());
        let more = |(before, after)| (after as f64 * windows[1]) / (before as f64 * windows[0]);
        Self {
            lever,
            price,
            needed: prediction.needed(),
            saves: i64::try_from(saves).unwrap_or(i64::MAX),
            arithmetic: arithmetic
                .filter(|(before, _)| *before > 0)
                .map(|both| more(both) - 1.0),
            prediction,
        }
    }
}
