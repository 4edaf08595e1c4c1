//! What each lever saves, for people and for programs.

use anyhow::Result;
use leanburn_memory::{Budget, Bytes};
use leanburn_train::levers::{Pulled, pull};
use leanburn_train::task::Builds;
use serde_json::json;

use crate::subject::Subject;

/// All levers on one recipe, and whether it would fit with each.
pub struct Levers {
    title: String,
    peak: Bytes,
    pulled: Vec<(Pulled, Option<bool>)>,
}

impl Levers {
    /// Predicts the recipe, and once more for every lever that changes it.
    pub fn of<T: Builds>(subject: &Subject<T>, budget: Option<&Budget>) -> Result<Self> {
        let base = subject.predict()?;
        let policy = |recipe: &_| subject.policy_of(recipe);
        let pulled = pull(&subject.recipe, &base, &subject.target(&policy))?.into_iter();
        let judged = pulled.map(|one| {
            let fits = budget.map(|budget| budget.holds(&one.prediction).is_sure());
            (one, fits)
        });
        Ok(Self {
            title: subject.title(),
            peak: base.needed(),
            pulled: judged.collect(),
        })
    }

    pub fn render(&self, as_json: bool) -> String {
        match as_json {
            true => self.json(),
            false => self.text(),
        }
    }

    fn json(&self) -> String {
        let levers = self.pulled.iter().map(|(pulled, fits)| {
            json!({
                "lever": pulled.lever, "peak": pulled.needed.0, "saves": pulled.saves,
                "arithmetic": pulled.arithmetic, "costs": pulled.price, "fits": fits,
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
        for (one, fits) in &self.pulled {
            let saved = match one.saves {
                0.. => Bytes(one.saves.unsigned_abs()).to_string(),
                _ => format!("-{}", Bytes(one.saves.unsigned_abs())),
            };
            let arithmetic = one
                .arithmetic
                .map_or("?".into(), |more| format!("{:+.0} %", 100.0 * more));
            let fits = match fits {
                Some(true) => "; fits",
                Some(false) => "; does not fit",
                None => "",
            };
            let peak = one.needed.to_string();
            text += &format!(
                "{:<36} {peak:>10}  {saved:>10}  {arithmetic:>10}  {}{fits}\n",
                one.lever, one.price
            );
        }
        text
    }
}
