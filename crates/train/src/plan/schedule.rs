//! The checkpoint schedule that takes least time under a budget.

use std::rc::Rc;

use leanburn_levers::CheckpointPolicy;
use leanburn_levers::checkpoint::{Offload, Segmentation};
use leanburn_memory::chain::{Chain, Plan, Plans, Schedule};
use leanburn_memory::{Budget, Bytes, Prediction};

use super::{HOST, Planner};
use crate::task::Builds;
use crate::{Recipe, TrainError};

/// A recipe that was predicted.
#[derive(Clone, Debug)]
pub struct Planned<T: Builds> {
    /// What to do.
    pub recipe: Recipe<T>,
    /// What its step takes.
    pub prediction: Rc<Prediction>,
    /// Bytes that an update moves to the host and back.
    pub moved: u64,
    /// Seconds of an update at best; infinite where they cannot be told.
    pub seconds: f64,
}

/// How often a budget for the chain is corrected by what a trace of the whole step says.
const TRIES: usize = 6;
/// How many of the leanest schedules are traced to find the leanest.
const NEIGHBOURS: usize = 3;

impl<T: Builds> Planner<'_, T> {
    /// A recipe as it is.
    pub(super) fn planned(&self, recipe: &Recipe<T>) -> Result<Planned<T>, TrainError> {
        let prediction = self.predict(recipe)?;
        let seconds = self.seconds(recipe, &prediction);
        Ok(Planned {
            recipe: recipe.clone(),
            prediction,
            moved: 0,
            seconds: seconds.unwrap_or(f64::INFINITY),
        })
    }

    /// The recipe with the fastest schedule that fits; `host` allows to park inputs there.
    pub(super) fn scheduled(
        &self,
        recipe: &Recipe<T>,
        budget: &Budget,
        host: bool,
    ) -> Result<Option<Planned<T>>, TrainError> {
        let Some(chain) = self.chain_with(recipe, host)? else {
            return Ok(None);
        };
        let usable = budget.usable().0;
        let room = usable.saturating_sub(chain.base);
        // A little beyond: the chain's costs are estimates, and the trace may find less.
        let all = chain.cost(&Schedule::default()).peak;
        let plans = Plans::of(&chain, room.saturating_add(room / 8).min(all));
        let mut limit = room;
        let mut found: Option<Planned<T>> = None;
        for _ in 0..TRIES {
            let Some(plan) = plans.within(limit) else {
                break;
            };
            let candidate = self.with(recipe, &chain, &plan)?;
            let needed = candidate.prediction.needed().0;
            if !budget.holds(&candidate.prediction).is_sure() {
                // What is found stays; a wider limit was one too many.
                if found.is_some() {
                    break;
                }
                let over = needed.saturating_sub(usable).max(limit / 256).max(1);
                limit = plan.cost.peak.saturating_sub(over);
                continue;
            }
            let slack = usable - needed;
            let is_better = found.as_ref().is_none_or(|f| candidate.seconds < f.seconds);
            if is_better {
                found = Some(candidate);
            }
            if plan.cost.extra == 0.0 || slack < usable / 64 || !is_better {
                break;
            }
            limit = limit.saturating_add(slack);
        }
        Ok(found)
    }

    /// The recipe with the schedule that needs least.
    pub(super) fn leanest(&self, recipe: &Recipe<T>, host: bool) -> Result<Planned<T>, TrainError> {
        let plain = self.planned(recipe)?;
        let Some(chain) = self.chain_with(recipe, host)? else {
            return Ok(plain);
        };
        let all = chain.cost(&Schedule::default()).peak;
        let frontier = Plans::of(&chain, all).frontier();
        self.leanest_of(plain, &chain, &frontier)
    }

    /// The leanest of a recipe as it is, and under the schedules of a frontier; the chain's costs are estimates, so some
    /// of these and the policies that have a name are traced.
    fn leanest_of(
        &self,
        plain: Planned<T>,
        chain: &Chain,
        frontier: &[Plan],
    ) -> Result<Planned<T>, TrainError> {
        let recipe = plain.recipe.clone();
        let named = [
            CheckpointPolicy::EVERY_BLOCK,
            CheckpointPolicy::EVERY_BLOCK.with_cheap(),
        ];
        let named = named.into_iter();
        let named = named.map(|policy| self.planned(&under(&recipe, policy)));
        let leanest = frontier.iter().take(NEIGHBOURS);
        let leanest = leanest.map(|plan| self.with(&recipe, chain, plan));
        leanest
            .chain(named)
            .try_fold(plain, |least, other| Ok(leaner(least, other?)))
    }

    /// Recipes with the fastest schedules for up to `points` budgets, from keeping everything, the first, to the
    /// leanest; without the gradients of parameters, what counts is [what blocks
    /// keep](Chain::without_gradients).
    ///
    /// # Errors
    ///
    /// Those of [`predict`](crate::predict), and where the network is no chain of blocks.
    pub fn frontier(
        &self,
        recipe: &Recipe<T>,
        points: usize,
        gradients: bool,
    ) -> Result<Vec<Planned<T>>, TrainError> {
        let no_chain = || TrainError::Prediction("the network is no chain of blocks".into());
        let chain = self.chain_with(recipe, false)?.ok_or_else(no_chain)?;
        let chain = match gradients {
            true => (*chain).clone(),
            false => (*chain).clone().without_gradients(),
        };
        let plans = Plans::of(&chain, chain.cost(&Schedule::default()).peak).frontier();
        let (Some(leanest), Some(plain)) = (plans.first(), plans.last()) else {
            return Err(no_chain());
        };
        let (low, high) = (leanest.cost.peak, plain.cost.peak);
        let steps = points.saturating_sub(1).max(1) as u64;
        let budgets = (0..=steps).map(|step| high - (high - low) / steps * step);
        let plain = self.planned(&under(recipe, CheckpointPolicy::NONE))?;
        let mut frontier = vec![plain.clone()];
        for budget in budgets.skip(1) {
            let within = plans.iter().rfind(|plan| plan.cost.peak <= budget);
            frontier.push(self.with(recipe, &chain, within.unwrap_or(leanest))?);
        }
        frontier.push(self.leanest_of(plain, &chain, &plans)?);
        // What is slower and no leaner is no part of it.
        let mut least = Bytes(u64::MAX);
        frontier.retain(|planned| {
            let is_leaner = planned.prediction.peak < least;
            least = least.min(planned.prediction.peak);
            is_leaner
        });
        Ok(frontier)
    }

    fn with(
        &self,
        recipe: &Recipe<T>,
        chain: &Chain,
        plan: &Plan,
    ) -> Result<Planned<T>, TrainError> {
        let recipe = under(recipe, named(&plan.schedule, chain.blocks.len()));
        let mut planned = self.planned(&recipe)?;
        // Moving is no operation of the trace.
        planned.moved = plan
            .cost
            .moved
            .saturating_mul(recipe.train.accumulate as u64);
        planned.seconds += chain.host.unwrap_or(0.0) * planned.moved as f64;
        Ok(planned)
    }

    fn chain_with(&self, recipe: &Recipe<T>, host: bool) -> Result<Option<Rc<Chain>>, TrainError> {
        let host = host && self.runtime().has_pool();
        let chain = self.chain(recipe)?;
        Ok(chain.map(|chain| match host {
            true => Rc::new(Chain {
                host: Some(HOST),
                ..(*chain).clone()
            }),
            false => chain,
        }))
    }
}

/// A recipe under another checkpoint policy, which alone says what waits on the host.
pub(super) fn under<T: Builds>(recipe: &Recipe<T>, checkpoint: CheckpointPolicy) -> Recipe<T> {
    Recipe {
        checkpoint,
        offload: Offload::None,
        ..recipe.clone()
    }
}

fn leaner<T: Builds>(a: Planned<T>, b: Planned<T>) -> Planned<T> {
    match b.prediction.needed() < a.prediction.needed() {
        true => b,
        false => a,
    }
}

/// A schedule by its name, where it has one.
fn named(schedule: &Schedule, blocks: usize) -> CheckpointPolicy {
    let names = [
        CheckpointPolicy::NONE,
        CheckpointPolicy::CHEAP,
        CheckpointPolicy::EVERY_BLOCK,
        CheckpointPolicy::EVERY_BLOCK.with_cheap(),
    ];
    let mut names = names.into_iter();
    names
        .find(|policy| policy.schedule(blocks) == *schedule)
        .unwrap_or_else(|| CheckpointPolicy::of(Segmentation::Schedule(schedule.clone())))
}
