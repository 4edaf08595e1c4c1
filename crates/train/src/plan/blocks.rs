//! The chain of a recipe's network, from three traces of its step.

use std::rc::Rc;

use leanburn_levers::checkpoint::{Offload, Segmentation};
use leanburn_levers::{CheckpointPolicy, Policy};
use leanburn_memory::chain::{Chain, Piece, Schedule, Traces};

use super::{Planner, key};
use crate::predict::traced;
use crate::task::Builds;
use crate::{Recipe, TrainError};

/// More blocks than a network has; a schedule is cut to the chain.
const ALL: usize = 4096;

impl<T: Builds> Planner<'_, T> {
    /// `None` where the network is no chain, or cannot be traced.
    pub(super) fn chain(&self, recipe: &Recipe<T>) -> Result<Option<Rc<Chain>>, TrainError> {
        let mut recipe = recipe.clone();
        recipe.checkpoint = CheckpointPolicy::NONE;
        recipe.offload = Offload::None;
        let key = key(&recipe)?;
        if let Some(known) = self.chains.borrow().get(&key) {
            return Ok(Some(known.clone()));
        }
        let policy = self.policy(&recipe)?;
        let under = |checkpoint: CheckpointPolicy| {
            let recipe = Recipe {
                checkpoint,
                ..recipe.clone()
            };
            self.trace(&recipe, policy)
        };
        let again = Piece::Again {
            pieces: Schedule(vec![Piece::ONE]),
            parked: false,
        };
        let again = Segmentation::Schedule(Schedule(vec![again; ALL]));
        let traces = [
            CheckpointPolicy::NONE,
            CheckpointPolicy::CHEAP,
            CheckpointPolicy::of(again),
        ]
        .map(under);
        let [Some(kept), Some(cheap), Some(again)] = &traces else {
            return Ok(None);
        };
        let traces = Traces { kept, cheap, again };
        let window = recipe.train.accumulate.min(2);
        let chain = Chain::of(traces, window, self.runtime(), self.rates);
        let Some(chain) = chain.map(Rc::new) else {
            return Ok(None);
        };
        self.chains.borrow_mut().insert(key, chain.clone());
        Ok(Some(chain))
    }

    fn trace(&self, recipe: &Recipe<T>, policy: Policy) -> Option<leanburn_memory::trace::Trace> {
        let (trace, known) = traced(recipe, self.target.facts, policy, self.runtime()).ok()?;
        known.ok().map(|_| trace)
    }
}
