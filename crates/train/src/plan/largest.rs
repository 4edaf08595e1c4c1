//! The largest micro-batch that fits.

use leanburn_memory::{Budget, Bytes};

use super::Planner;
use crate::task::Builds;
use crate::{Recipe, TrainError};

/// Beyond this no device has room, and sizes stay small enough to compute with.
const MOST: usize = 1 << 20;

/// What a step took when it was run.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// So many bytes at its peak, the allocator's included.
    Took(Bytes),
    /// More than there was.
    OutOfMemory,
}

/// The largest micro-batch, and how far prediction was off on the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Largest {
    /// Samples; 0 where not even one fits.
    pub batch: usize,
    /// What its step is predicted to need.
    pub needed: Bytes,
    /// Every step that was run: batch, what was predicted, what it took.
    pub probes: Vec<(usize, Bytes, Probed)>,
}

/// Finds the largest micro-batch of a recipe by prediction, and confirms it by running one step of it, if there is a
/// way to. A step that takes more than the budget steps the batch down; an error of `probe` that is not about memory
/// ends the search (trap B35).
///
/// # Errors
///
/// Those of [`predict`](crate::predict), and those of `probe`.
pub fn largest_batch<T: Builds, E: From<TrainError>>(
    planner: &Planner<T>,
    recipe: &Recipe<T>,
    budget: &Budget,
    mut probe: Option<impl FnMut(&Recipe<T>) -> Result<Probed, E>>,
) -> Result<Largest, E> {
    let with = |batch: usize| {
        let mut recipe = recipe.clone();
        recipe.train.batch = batch;
        recipe
    };
    let mut usable = budget.usable();
    let mut probes = Vec::new();
    loop {
        let batch = predicted(planner, usable, with)?;
        let needed = match batch {
            0 => Bytes(0),
            batch => planner.predict(&with(batch))?.needed(),
        };
        let largest = |probes| Largest {
            batch,
            needed,
            probes,
        };
        let Some(probe) = probe.as_mut().filter(|_| batch > 0) else {
            return Ok(largest(probes));
        };
        let probed = probe(&with(batch))?;
        let over = match probed {
            Probed::Took(took) if took <= budget.memory => None,
            Probed::Took(took) => Some(took.0 - budget.memory.0),
            Probed::OutOfMemory => Some(0),
        };
        probes.push((batch, needed, probed));
        match over {
            None => return Ok(largest(probes)),
            // By what was missing, and by a sixteenth at least, so that it ends.
            Some(over) => usable = Bytes(needed.0.saturating_sub(over.max(needed.0 / 16).max(1))),
        }
    }
}

/// 0 where not even one sample fits. Bytes grow with the batch almost on a line, so that two points of it say where
/// to look for the third; each look costs a trace.
fn predicted<T: Builds>(
    planner: &Planner<T>,
    usable: Bytes,
    with: impl Fn(usize) -> Recipe<T>,
) -> Result<usize, TrainError> {
    let needed = |batch: usize| match planner.predict(&with(batch)) {
        Ok(prediction) if prediction.refused.is_none() => Ok(Some(prediction.needed().0)),
        Ok(_) => Ok(None),
        // One of a size that nothing can address.
        Err(error) if error.is_wrong_use() && batch > 1 => Ok(None),
        Err(error) => Err(error),
    };
    let Some(one) = needed(1)?.filter(|needed| *needed <= usable.0) else {
        return Ok(0);
    };
    let (mut fitting, mut exceeding) = ((1, one), MOST);
    let mut more = 1;
    while exceeding - fitting.0 > 1 {
        let guess = fitting.0.saturating_add(more).min(exceeding - 1);
        let mut slope = 0;
        match needed(guess)? {
            Some(needed) => {
                slope = needed.saturating_sub(fitting.1) / (guess - fitting.0) as u64;
                match needed <= usable.0 {
                    true => fitting = (guess, needed),
                    false => exceeding = guess,
                }
            }
            None => exceeding = guess,
        }
        let room = usable.0 - fitting.1;
        // Where the line is level or not known, half of what is left goes.
        let on_line = room.checked_div(slope);
        let on_line = on_line.map(|more| usize::try_from(more).unwrap_or(MOST));
        more = on_line.unwrap_or((exceeding - fitting.0) / 2).max(1);
    }
    Ok(fitting.0)
}
