//! What each lever saves: the step predicted again with it pulled.

use anyhow::Result;
use leanburn_memory::{Bytes, Prediction};
use leanburn_train::Recipe;
use leanburn_train::task::{Builds, Lever};
use serde_json::json;

use super::recipe::Subject;

/// A lever, pulled.
struct Pulled {
    lever: &'static str,
    price: String,
    peak: Bytes,
    saves: i64,
    arithmetic: Option<f64>,
}

/// All levers on one recipe.
pub struct Levers {
    title: String,
    peak: Bytes,
    pulled: Vec<Pulled>,
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
        (
            "half the batch, accumulate twice",
            "BatchNorm sees half of it",
            |r| {
                r.train.batch = (r.train.batch / 2).max(1);
                r.train.accumulate *= 2;
            },
        ),
        (
            "a quarter of the batch, four times",
            "BatchNorm sees a quarter",
            |r| {
                r.train.batch = (r.train.batch / 4).max(1);
                r.train.accumulate *= 4;
            },
        ),
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
    pub fn of<T: Builds>(subject: &Subject<T>) -> Result<Self> {
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
            let pulled_here = Pulled::new(lever, price, &base, &changed.predict()?, accumulate);
            if pulled_here.saves != 0 {
                pulled.push(pulled_here);
            }
        }
        pulled.sort_by_key(|pulled| std::cmp::Reverse(pulled.saves));
        Ok(Self {
            title: subject.title(),
            peak: base.peak,
            pulled,
        })
    }

    pub fn print(&self, as_json: bool) {
        if as_json {
            let levers = self.pulled.iter().map(|pulled| {
                json!({
                    "lever": pulled.lever, "peak": pulled.peak.0, "saves": pulled.saves,
                    "arithmetic": pulled.arithmetic, "costs": pulled.price,
                })
            });
            let levers: Vec<_> = levers.collect();
            println!(
                "{}",
                json!({ "peak": { "predicted": self.peak.0 }, "levers": levers })
            );
            return;
        }
        println!("{}\npeak {}\n", self.title, self.peak);
        println!(
            "{:<36} {:>10}  {:>10}  {:>10}  price",
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
            let peak = one.peak.to_string();
            println!(
                "{:<36} {peak:>10}  {saved:>10}  {arithmetic:>10}  {}",
                one.lever, one.price
            );
        }
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
        let saves = i128::from(base.peak.0) - i128::from(changed.peak.0);
        let arithmetic = base.arithmetic.zip(changed.arithmetic);
        Self {
            lever,
            price: price.to_owned(),
            peak: changed.peak,
            saves: i64::try_from(saves).unwrap_or(i64::MAX),
            arithmetic: arithmetic
                .filter(|(base, _)| *base > 0)
                .map(|(base, changed)| {
                    (changed as f64 * accumulate[1]) / (base as f64 * accumulate[0]) - 1.0
                }),
        }
    }
}
