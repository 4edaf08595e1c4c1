//! The recipe planner: a budget of bytes goes in, the cheapest recipe that fits comes out.
//!
//! Levers are tried by price. Those that cost nothing come first, then half precision, then what computes more but
//! changes no result: the checkpoint schedule of the [chain planner](leanburn_memory::chain) and, for networks
//! without BatchNorm, smaller micro-batches; then smaller micro-batches under BatchNorm, host memory, and last
//! another optimizer. The samples of an update stay the same throughout. Whatever is found is predicted from a trace
//! of its own before it is believed.

mod blocks;
mod largest;
mod schedule;
mod search;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use leanburn_levers::Policy;
use leanburn_memory::chain::Chain;
use leanburn_memory::trace::{Rates, Runtime};
use leanburn_memory::{Budget, Bytes, Fit, Prediction};

use crate::levers::Target;
use crate::predict::runtime;
use crate::task::Builds;
use crate::{Backend, Recipe, TrainError};

pub use largest::{Largest, Probed, largest_batch};
pub use schedule::Planned;

/// What a planner leaves as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The dtypes.
    pub precision: bool,
    /// The micro-batch, where BatchNorm looks at it.
    pub batch: bool,
    /// The optimizer.
    pub optimizer: bool,
}

impl Keep {
    /// All that changes losses or gradients.
    pub const RESULTS: Self = Self {
        precision: true,
        batch: true,
        optimizer: true,
    };
}

/// A lever that a plan pulls.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What.
    pub lever: String,
    /// What it costs, in words.
    pub costs: String,
    /// Bytes less than before it; negative where it takes more.
    pub saves: i64,
    /// How much longer an update takes than before it, a fraction, at best; `None` where that is not known.
    pub slower: Option<f64>,
    /// Bytes that the device must have after it.
    pub needed: Bytes,
}

impl Step {
    /// The costs, with how much longer an update takes.
    pub fn told_costs(&self) -> String {
        match self.slower {
            Some(slower) => format!("{}, {:+.0} % time", self.costs, 100.0 * slower),
            None => self.costs.clone(),
        }
    }
}

/// How fast devices of a backend are: ratios are what a plan is made of, so any card stands for the others.
pub fn rates(backend: Backend) -> Rates {
    match runtime(backend).has_pool() {
        // As an RTX 3090.
        true => Rates {
            f32: 35.6e12,
            half: 71.2e12,
            bytes: 936e9,
        },
        false => Rates::CPU,
    }
}

/// A recipe that fits, or the leanest that there is.
#[derive(Clone, Debug)]
pub struct Plan<T: Builds> {
    /// With all levers pulled.
    pub recipe: Recipe<T>,
    /// What its step takes.
    pub prediction: Rc<Prediction>,
    /// What was pulled, in order.
    pub steps: Vec<Step>,
    /// What the recipe needed as it was.
    pub before: Bytes,
    /// What it had to fit into.
    pub budget: Budget,
    /// Bytes that an update moves to the host and back.
    pub moved: u64,
    /// Seconds of an update at best, where they can be told.
    pub seconds: Option<f64>,
}

impl<T: Builds> Plan<T> {
    /// Whether it fits, and by how much.
    pub fn fit(&self) -> Fit {
        self.budget.holds(&self.prediction)
    }

    /// Seconds of an update at best on a device of these rates, where they can be told.
    pub fn seconds_at(&self, rates: Rates) -> Option<f64> {
        let accumulate = self.recipe.train.accumulate;
        let computes = self.prediction.seconds(rates, accumulate)?;
        Some(computes + HOST * self.moved as f64)
    }

    /// The smallest budget that the planned recipe fits into; the plan of one that does not fit is the leanest.
    pub fn smallest_budget(&self) -> Bytes {
        self.budget.smallest(self.prediction.needed())
    }
}

/// Plans a recipe for any number of budgets; what was traced for one is known for the next.
pub struct Planner<'a, T: Builds> {
    target: Target<'a, T>,
    keep: Keep,
    rates: Rates,
    half: &'static str,
    predictions: RefCell<HashMap<String, Rc<Prediction>>>,
    chains: RefCell<HashMap<String, Option<Rc<Chain>>>>,
}

/// Seconds to move a byte to the host and back over PCIe 4 with 16 lanes, of which some 24 GB/s arrive.
const HOST: f64 = 2.0 / 24e9;

impl<'a, T: Builds> Planner<'a, T> {
    /// For a target whose kernels run at these rates.
    pub fn new(target: Target<'a, T>, keep: Keep, rates: Rates) -> Self {
        Self {
            target,
            keep,
            rates,
            half: "bf16",
            predictions: RefCell::default(),
            chains: RefCell::default(),
        }
    }

    /// The half precision to change to, where it is not bf16.
    pub fn with_half(mut self, half: &'static str) -> Self {
        self.half = half;
        self
    }

    /// What a recipe takes there.
    pub fn predict(&self, recipe: &Recipe<T>) -> Result<Rc<Prediction>, TrainError> {
        let key = key(recipe)?;
        if let Some(known) = self.predictions.borrow().get(&key) {
            return Ok(known.clone());
        }
        let prediction = Rc::new(self.target.predict(recipe)?);
        let mut predictions = self.predictions.borrow_mut();
        predictions.insert(key, prediction.clone());
        Ok(prediction)
    }

    fn runtime(&self) -> Runtime {
        runtime(self.target.backend)
    }

    fn policy(&self, recipe: &Recipe<T>) -> Result<Policy, TrainError> {
        (self.target.policy)(recipe)
    }

    fn seconds(&self, recipe: &Recipe<T>, prediction: &Prediction) -> Option<f64> {
        prediction.seconds(self.rates, recipe.train.accumulate)
    }
}

fn key<T: Builds>(recipe: &Recipe<T>) -> Result<String, TrainError> {
    toml::to_string(recipe).map_err(|cause| TrainError::Recipe(cause.to_string()))
}
