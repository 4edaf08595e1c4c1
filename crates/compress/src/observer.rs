//! What was seen of a tensor, batch by batch.

mod batch;
mod entropy;
mod error;
mod histogram;
mod mse;
mod percentile;
#[cfg(test)]
mod tests;

use batch::Batch;
use histogram::{Bin, Histogram};

use super::method::{AVERAGING, Method};
use super::range::Range;

pub use error::ObserveError;

/// Sees the values of one tensor, batch by batch, and knows the range of every [`Method`].
///
/// The memory is the same however much was seen: 192 KiB, twice that with negative values. The
/// order of batches matters to [`Method::Average`] only.
#[derive(Clone, Debug)]
pub struct Observer {
    histogram: Histogram,
    count: u64,
    batches: u64,
    /// The extremes of all batches, and their moving averages; none before the first.
    seen: Option<Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    min: f32,
    max: f32,
    average_min: f64,
    average_max: f64,
}

impl Observer {
    /// One that has seen nothing.
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new(),
            count: 0,
            batches: 0,
            seen: None,
        }
    }

    /// Takes note of one batch, in any order of its values; none at all are no batch.
    ///
    /// # Errors
    ///
    /// [`ObserveError::NonFinite`] where a value is; then the batch is not taken note of.
    pub fn see(&mut self, values: &[f32]) -> Result<(), ObserveError> {
        if values.is_empty() {
            return Ok(());
        }
        let batch = Batch::of(values)?;
        self.histogram.add(values, &batch);
        let Batch { min, max, .. } = batch;
        self.count += values.len() as u64;
        self.batches += 1;
        let moved = |average: f64, new: f32| average + AVERAGING * (f64::from(new) - average);
        self.seen = Some(match self.seen {
            None => Seen {
                min,
                max,
                average_min: min.into(),
                average_max: max.into(),
            },
            Some(seen) => Seen {
                min: min.min(seen.min),
                max: max.max(seen.max),
                average_min: moved(seen.average_min, min),
                average_max: moved(seen.average_max, max),
            },
        });
        Ok(())
    }

    /// Values seen, zeros included.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Batches seen.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// The smallest value seen.
    pub fn min(&self) -> Option<f32> {
        self.seen.map(|seen| seen.min)
    }

    /// The largest value seen.
    pub fn max(&self) -> Option<f32> {
        self.seen.map(|seen| seen.max)
    }

    /// The range that `method` chooses, which reaches no further than the values and zero.
    ///
    /// # Errors
    ///
    /// [`ObserveError`] where nothing was seen, or the method's percentage is out of range.
    pub fn range(&self, method: Method) -> Result<Range, ObserveError> {
        let method = method.validate()?;
        let seen = self.seen.ok_or(ObserveError::Nothing)?;
        let (low, high) = match method {
            Method::MinMax => (seen.min.into(), seen.max.into()),
            Method::Average => (seen.average_min, seen.average_max),
            Method::Percentile(percent) => percentile::ends(&self.bins(), percent),
            Method::Entropy => entropy::ends(&self.bins()),
            Method::Mse => mse::ends(&self.bins()),
        };
        Ok(Range::around_zero(
            (low as f32).max(seen.min),
            (high as f32).min(seen.max),
        ))
    }

    /// Share of the values seen that lie outside of `range`, 0 to 1, as far as the bins tell.
    pub fn saturated(&self, range: Range) -> f64 {
        let (low, high) = (f64::from(range.low()), f64::from(range.high()));
        let outside = self.bins().into_iter().map(|bin| {
            let inside = bin.high.min(high) - bin.low.max(low);
            let width = bin.high - bin.low;
            let share = if width > 0.0 {
                (inside / width).max(0.0)
            } else {
                f64::from(inside >= 0.0)
            };
            bin.count as f64 * (1.0 - share)
        });
        outside.sum::<f64>() / self.count.max(1) as f64
    }

    fn bins(&self) -> Vec<Bin> {
        self.seen
            .map(|seen| self.histogram.bins(seen.min, seen.max))
            .unwrap_or_default()
    }
}

impl Default for Observer {
    fn default() -> Self {
        Self::new()
    }
}
