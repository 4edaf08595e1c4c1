//! The chain of a recipe's network, from three traces of its step.

use std::rc::Rc;

use leanburn_levers::checkpoint::Segmentation;
use leanburn_levers::{CheckpointPolicy, Policy};
use leanburn_memory::chain::{Chain, Piece, Schedule, Traces};

use super::schedule::under;
use super::{Planner, key};
use crate::predict::traced;
use crate::task::Builds;
use crate::{Recipe, TrainError};

/// More blocks than a network has; a schedule is cut to the chain.
const ALL: usize = 4096;

impl<T: Builds> Planner<'_, T> {
    /// `None` where the network is no chain of blocks, or cannot be traced.
    pub(super) fn chain(&self, recipe: &Recipe<T>) -> Result<Option<Rc<Chain>>, TrainError> {
        let recipe = under(recipe, CheckpointPolicy::NONE);
        let key = key(&recipe)?;
        if let Some(known) = self.chains.borrow().get(&key) {
            return Ok(known.clone());
        }
        let chain = self.traced_chain(&recipe)?.map(Rc::new);
        self.chains.borrow_mut().insert(key, chain.clone());
        Ok(chain)
    }

    fn traced_chain(&self, recipe: &Recipe<T>) -> Result<Option<Chain>, TrainError> {
        let policy = self.policy(recipe)?;
        let trace = |checkpoint| self.trace(&under(recipe, checkpoint), policy);
        let again = Piece::Again {
            pieces: Schedule(vec![Piece::ONE]),
            parked: false,
        };
        let again = Segmentation::Schedule(Schedule(vec![again; ALL]));
        let chain = || {
            let traces = Traces {
                kept: &trace(CheckpointPolicy::NONE)?,
                cheap: &trace(CheckpointPolicy::CHEAP)?,
                again: &trace(CheckpointPolicy::of(again))?,
            };
            let window = recipe.train.accumulate.min(2);
            Chain::of(traces, window, self.runtime(), self.rates)
        };
        Ok(chain())
    }

    fn trace(&self, recipe: &Recipe<T>, policy: Policy) -> Option<leanburn_memory::trace::Trace> {
        let (trace, known) = traced(recipe, self.target.facts, policy, self.runtime()).ok()?;
        known.ok().map(|_| trace)
    }
}
