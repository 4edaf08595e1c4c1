//! The range whose quantized distribution diverges least from the seen one.
//!
//! Migacz, "8-bit Inference with TensorRT", GTC 2017: values outside of a candidate range are added
//! to its last bin (P); the bins inside, without those, are shared out to the levels, and each
//! level's sum is spread evenly over its bins that are not empty (Q); the range with the least
//! KL(P || Q) wins, the widest among equals. Adapted to asymmetric uint8: 256 levels instead of
//! 128, and two ends.

mod divergence;
mod linear;
#[cfg(test)]
mod tests;

use divergence::{Divergence, LEVELS};
use linear::{BINS, Linear};

use super::histogram::Bin;

const MAX_ROUNDS: usize = 4;

/// The ends whose distribution diverges least, on edges of [`Linear`]'s bins.
///
/// Both ends are first limited to one magnitude, as TensorRT does; then each is tried alone.
pub(super) fn ends(bins: &[Bin]) -> (f64, f64) {
    if bins.is_empty() {
        return (0.0, 0.0);
    }
    let linear = Linear::new(bins);
    let (below, above) = Search::new(&linear).best();
    let (below, above) = (below as f64, above as f64);
    (-below * linear.width, above * linear.width)
}

/// The best numbers of bins below and above zero so far.
struct Search<'a> {
    divergence: Divergence<'a>,
    /// Numbers of bins that end at one that is not empty, ascending; 0 if there is none.
    below: Vec<usize>,
    above: Vec<usize>,
    best: (usize, usize),
    least: f64,
}

impl<'a> Search<'a> {
    fn new(linear: &'a Linear) -> Self {
        let (below, above) = linear.counts.split_at(linear.below);
        let (below, above) = (lengths(below.iter().rev()), lengths(above.iter()));
        Self {
            divergence: Divergence::new(linear),
            best: (up_to(&below, BINS), up_to(&above, BINS)),
            least: f64::INFINITY,
            below,
            above,
        }
    }

    fn best(mut self) -> (usize, usize) {
        for limit in (1..=BINS).rev() {
            self.attempt((up_to(&self.below, limit), up_to(&self.above, limit)));
        }
        for _ in 0..MAX_ROUNDS {
            let before = self.best;
            for i in (0..self.below.len()).rev() {
                self.attempt((self.below[i], self.best.1));
            }
            for i in (0..self.above.len()).rev() {
                self.attempt((self.best.0, self.above[i]));
            }
            if self.best == before {
                break;
            }
        }
        self.best
    }

    /// Takes these ends if they are better; fewer bins than levels are no candidate.
    fn attempt(&mut self, ends: (usize, usize)) {
        if ends.0 + ends.1 < LEVELS {
            return;
        }
        let divergence = self.divergence.of(ends);
        if divergence < self.least {
            (self.best, self.least) = (ends, divergence);
        }
    }
}

/// Where the bins can end: after each that is not empty, or at zero if all are.
fn lengths<'a>(counts: impl Iterator<Item = &'a f64>) -> Vec<usize> {
    let used = counts.enumerate().filter(|(_, count)| **count > 0.0);
    let lengths: Vec<usize> = used.map(|(i, _)| i + 1).collect();
    if lengths.is_empty() { vec![0] } else { lengths }
}

/// The largest of the ascending `lengths` within `limit`, or the smallest of all.
fn up_to(lengths: &[usize], limit: usize) -> usize {
    let within = lengths.partition_point(|&length| length <= limit);
    lengths[within.saturating_sub(1)]
}
