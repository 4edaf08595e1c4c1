//! What each lever saves: the step predicted again with it pulled.

use anyhow::Result;
use leanburn_memory::{Bytes, Prediction};
use leanburn_train::Recipe;
use leanburn_train::task::{Builds, Lever};
use serde_json::json;

use super::budget::Budget;
use super::recipe::Subject;

/// A lever, pulled.
struct Pulled {
    lever: &'static str,
    price: String,
    peak: Bytes,
    saves: i64,
    arithmetic: Option<f64>,
    fits: Option<bool>,
}

/// All levers on one recipe.
pub struct Levers {
    title: String,
    peak: Bytes,
    pulled: Vec<Pulled>,
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
            r.optimizer.name = leanburn_train::OptimizerKind::Lion;
        }),
        ("optimizer sgd", "another optimizer, momentum only", |r| {
            r.optimizer.name = leanburn_train::OptimizerKind::Sgd;
        }),
    ]
}

impl Levers {
    /// Predicts the recipe, and once more for every lever that changes it.
    pub fn of<T: Builds>(subject: &Subject<T>, budget: Option<&Budget>) -> Result<Self> {
        let base = subject.predict()?;
        let mut pulled = Vec::new();
        let changes = changes::<T>().into_iter().chain(T::levers());
        for (lever, price, change) in changes {
            let changed = subject.changed(change)?;
            let same_dtypes = changed.policy()? == subject.policy()?;
            let rest = Recipe {
                precision: subject.recipe.precision.clone(),
                ..changed.recipe.clone()
            };
            if same_dtypes && rest == subject.recipe {
                continue;
            }
            let accumulate = [subject, &changed].map(|one| one.recipe.train.accumulate as f64);
            // A task has a remark where its network looks at a whole micro-batch.
            let price = match price == BATCH && T::window_remark(&changed.recipe).is_empty() {
                true => "none",
                false => price,
            };
            let prediction = changed.predict()?;
            let mut one = Pulled::new(lever, price, &base, &prediction, accumulate);
            one.fits = budget.map(|budget| budget.holds(&prediction).is_sure());
            if one.saves != 0 {
                pulled.push(one);
            }
        }
        pulled.sort_by_key(|pulled| std::cmp::Reverse(pulled.saves));
        Ok(Self {
            title: subject.title(),
            peak: base.needed(),
            pulled,
        })
    }

    pub fn render(&self, as_json: bool) -> String {
        match as_json {
            true => self.json(),
            false => self.text(),
        }
    }

    fn json(&self) -> String {
        let levers = self.pulled.iter().map(|pulled| {
            json!({
                "lever": pulled.lever, "peak": pulled.peak.0, "saves": pulled.saves,
                "arithmetic": pulled.arithmetic, "costs": pulled.price, "fits": pulled.fits,
            })
        });
        let levers: Vec<_> = levers.collect();
        let object = json!({ "peak": { "predicted": self.peak.0 }, "levers": levers });
        format!("{object}\n")
    }

    fn text(&self) -> String {
        let mut text = format!("{}\npeak {}\n\n", self.title, self.peak);
        text += &format!(
            "{:<36} {:>10}  {:>10}  {:>10}  price\n",
            "lever", "peak", "saves", "computes"
        );
        for one in &self.pulled {
            let saved = match one.saves {
                0.. => Bytes(one.saves.unsigned_abs()).to_string(),
                _ => format!("-{}", Bytes(one.saves.unsigned_abs())),
            };
            let arithmetic = one
                .arithmetic
                .map_or("?".into(), |more| format!("{:+.0} %", 100.0 * more));
            let fits = match one.fits {
                Some(true) => "; fits",
                Some(false) => "; does not fit",
                None => "",
            };
            let peak = one.peak.to_string();
            text += &format!(
                "{:<36} {peak:>10}  {saved:>10}  {arithmetic:>10}  {}{fits}\n",
                one.lever, one.price
            );
        }
        text
    }
}

impl Pulled {
    /// `accumulate` is the number of micro-batches of both.
    fn new(
        lever: &'static str,
        price: &str,
        base: &Prediction,
        changed: &Prediction,
        accumulate: [f64; 2],
    ) -> Self {
        let saves = i128::from(base.needed().0) - i128::from(changed.needed().0);
        let arithmetic = base.arithmetic.zip(changed.arithmetic);
        Self {
            lever,
            price: price.to_owned(),
            peak: changed.needed(),
            fits: None,
            saves: i64::try_from(saves).unwrap_or(i64::MAX),
            arithmetic: arithmetic
                .filter(|(base, _)| *base > 0)
                .map(|(base, changed)| {
                    (changed as f64 * accumulate[1]) / (base as f64 * accumulate[0]) - 1.0
                }),
        }
    }
}
