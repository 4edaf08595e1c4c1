//! Which levers are pulled, in which order.

use leanburn_levers::{CheckpointPolicy, Precision};
use leanburn_memory::{Budget, Bytes};

use super::schedule::Planned;
use super::{Plan, Planner, Step};
use crate::recipe::MOST;
use crate::task::Builds;
use crate::{OptimizerKind, Recipe, TrainError};

/// Of so many micro-batches the leanest schedule is looked for, where nothing fits.
const LEAN: usize = 3;
/// BatchNorm over a single sample is no norm.
const SMALLEST_NORM: usize = 2;

impl<T: Builds> Planner<'_, T> {
    /// The cheapest recipe that fits; the leanest, where none does.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](crate::predict).
    pub fn plan(&self, recipe: &Recipe<T>, budget: &Budget) -> Result<Plan<T>, TrainError> {
        let start = self.planned(recipe)?;
        let mut search = Search {
            planner: self,
            budget,
            before: start.prediction.needed(),
            now: start,
            steps: Vec::new(),
        };
        search.run()?;
        Ok(Plan {
            seconds: Some(search.now.seconds).filter(|seconds| seconds.is_finite()),
            moved: search.now.moved,
            recipe: search.now.recipe,
            prediction: search.now.prediction,
            steps: search.steps,
            before: search.before,
            budget: budget.clone(),
        })
    }
}

struct Search<'a, 'b, T: Builds> {
    planner: &'a Planner<'b, T>,
    budget: &'a Budget,
    before: Bytes,
    now: Planned<T>,
    steps: Vec<Step>,
}

impl<T: Builds> Search<'_, '_, T> {
    fn run(&mut self) -> Result<(), TrainError> {
        if self.fits(&self.now) {
            return Ok(());
        }
        for (lever, price, change) in T::levers() {
            self.pull(lever, price, change)?;
            if self.fits(&self.now) {
                return Ok(());
            }
        }
        self.halve_precision()?;
        if self.fits(&self.now) || self.recompute()? {
            return Ok(());
        }
        if !self.planner.keep.optimizer && self.now.recipe.optimizer.name == OptimizerKind::AdamW {
            let price = "another optimizer with one moment; wants a smaller learning rate";
            self.pull("optimizer lion", price, |recipe| {
                recipe.optimizer.name = OptimizerKind::Lion;
            })?;
            if self.fits(&self.now) || self.recompute()? {
                return Ok(());
            }
        }
        self.give_all()
    }

    fn fits(&self, candidate: &Planned<T>) -> bool {
        self.budget.holds(&candidate.prediction).is_sure()
    }

    /// Changes the recipe, if that saves anything.
    fn pull(
        &mut self,
        lever: &str,
        price: &str,
        change: impl Fn(&mut Recipe<T>),
    ) -> Result<(), TrainError> {
        let mut recipe = self.now.recipe.clone();
        change(&mut recipe);
        if recipe == self.now.recipe {
            return Ok(());
        }
        let changed = self.planner.planned(&recipe)?;
        if changed.prediction.needed() < self.now.prediction.needed() {
            self.take(lever.into(), price.into(), changed);
        }
        Ok(())
    }

    fn halve_precision(&mut self) -> Result<(), TrainError> {
        let planner = self.planner;
        let is_full = planner.policy(&self.now.recipe)?.compute == Precision::F32;
        if planner.keep.precision || !is_full {
            return Ok(());
        }
        // A device may lack the dtype.
        let has = |half: &&str| {
            let mut probe = self.now.recipe.clone();
            probe.precision.policy = (*half).into();
            planner.policy(&probe).is_ok()
        };
        let Some(half) = [planner.half, "f16"].into_iter().find(has) else {
            return Ok(());
        };
        let lever = format!("precision {half}");
        let price = "products round to half precision; weights and sums stay f32";
        self.pull(&lever, price, |recipe| {
            recipe.precision.policy = half.into();
        })
    }

    /// Checkpoint schedules, and micro-batches as small as it takes; whether that is enough.
    fn recompute(&mut self) -> Result<bool, TrainError> {
        let has_norm = self.has_batch_norm();
        let mut found = self.fastest(!has_norm, false)?;
        if found.is_none() && has_norm && !self.planner.keep.batch {
            found = self.fastest(true, false)?;
        }
        if found.is_none() && self.has_host() {
            let smaller = !has_norm || !self.planner.keep.batch;
            found = self.fastest(smaller, true)?;
        }
        match found {
            Some(found) => self.split_and_schedule(found).map(|()| true),
            None => Ok(false),
        }
    }

    /// The leanest of all, for the record. Smaller micro-batches need less, until the gradients that wait for the
    /// others weigh more.
    fn give_all(&mut self) -> Result<(), TrainError> {
        let smaller = !self.has_batch_norm() || !self.planner.keep.batch;
        let planned = self.micro_batches(smaller).into_iter();
        let planned = planned.map(|recipe| self.planner.planned(&recipe));
        let mut planned: Vec<Planned<T>> = planned.collect::<Result<_, _>>()?;
        planned.sort_by_key(|planned| planned.prediction.needed());
        let mut leanest = self.now.clone();
        for one in planned.iter().take(LEAN) {
            let lean = self.planner.leanest(&one.recipe, self.has_host())?;
            if lean.prediction.needed() < leanest.prediction.needed() {
                leanest = lean;
            }
        }
        self.split_and_schedule(leanest)
    }

    /// The fastest of all schedules and micro-batches that fit.
    fn fastest(&self, smaller: bool, host: bool) -> Result<Option<Planned<T>>, TrainError> {
        let mut fastest: Option<Planned<T>> = None;
        for recipe in self.micro_batches(smaller) {
            let Some(found) = self.planner.scheduled(&recipe, self.budget, host)? else {
                continue;
            };
            let is_plain = found.recipe.checkpoint == CheckpointPolicy::NONE;
            if fastest.as_ref().is_none_or(|f| found.seconds < f.seconds) {
                fastest = Some(found);
            }
            // Even smaller ones move the weights more often, and save nothing that is wanted.
            if is_plain {
                break;
            }
        }
        Ok(fastest)
    }

    /// Recipes of as many samples an update; the largest micro-batch first.
    fn micro_batches(&self, smaller: bool) -> Vec<Recipe<T>> {
        let recipe = &self.now.recipe;
        let batch = recipe.train.batch;
        let samples = batch.saturating_mul(recipe.train.accumulate);
        let smallest = match self.has_batch_norm() {
            true => SMALLEST_NORM.min(batch),
            false => 1,
        };
        let lowest = if smaller { smallest } else { batch };
        let sizes = (lowest..=batch).rev();
        let sizes = sizes.filter(|size| samples.is_multiple_of(*size) && samples / size <= MOST);
        let of = |size: usize| {
            let mut recipe = recipe.clone();
            recipe.train.batch = size;
            recipe.train.accumulate = samples / size;
            recipe
        };
        sizes.map(of).collect()
    }

    /// The way to a candidate, in the steps that it is made of.
    fn split_and_schedule(&mut self, found: Planned<T>) -> Result<(), TrainError> {
        let (batch, accumulate) = (found.recipe.train.batch, found.recipe.train.accumulate);
        if batch != self.now.recipe.train.batch {
            let mut split = self.now.recipe.clone();
            (split.train.batch, split.train.accumulate) = (batch, accumulate);
            let price = match self.has_batch_norm() {
                true => format!("BatchNorm sees {batch} at a time"),
                false => "weights are read more often".into(),
            };
            let lever = format!("micro-batch {batch}, {accumulate} an update");
            let split = self.planner.planned(&split)?;
            self.take(lever, price, split);
        }
        if found.recipe != self.now.recipe {
            let policy = &found.recipe.checkpoint;
            let lever = format!("checkpoint {policy}");
            let price = if policy.has_parked() {
                "computes again, and moves inputs to the host and back"
            } else if *policy != CheckpointPolicy::NONE {
                "computes again in the backward"
            } else {
                "keeps everything"
            };
            self.take(lever, price.into(), found);
        }
        Ok(())
    }

    fn take(&mut self, lever: String, costs: String, next: Planned<T>) {
        let needed = next.prediction.needed();
        let saves = i128::from(self.now.prediction.needed().0) - i128::from(needed.0);
        let slower = next.seconds / self.now.seconds - 1.0;
        self.steps.push(Step {
            lever,
            costs,
            saves: i64::try_from(saves).unwrap_or(i64::MAX),
            slower: Some(slower).filter(|slower| slower.is_finite()),
            needed,
        });
        self.now = next;
    }

    fn has_batch_norm(&self) -> bool {
        !T::window_remark(&self.now.recipe).is_empty()
    }

    fn has_host(&self) -> bool {
        self.planner.runtime().has_pool()
    }
}
