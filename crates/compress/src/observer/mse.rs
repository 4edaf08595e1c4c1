//! The range with the least expected squared error.
//!
//! Both ends are first limited to one magnitude, from the largest seen downwards, which finds the
//! right order of magnitude; then each end moves on its own while that helps.

use leanburn_levers::Affine;

use super::super::range::Range;
use super::histogram::Bin;

/// Steps to a factor of two in the first search.
const STEPS_PER_BINADE: i32 = 8;
const STEPS: i32 = 24 * STEPS_PER_BINADE;

/// The last steps of the second search are this share of a factor of two.
const FINEST: f64 = 1.0 / 1024.0;
const MAX_ROUNDS: usize = 100;

/// The ends whose squared error is least, never more than without clipping.
pub(super) fn ends(bins: &[Bin]) -> (f64, f64) {
    let mut search = Search::new(bins);
    let (low, high) = search.ends;
    let largest = high.max(-low);
    for step in 1..=STEPS {
        let limit = largest * (-f64::from(step) / f64::from(STEPS_PER_BINADE)).exp2();
        search.attempt(low.max(-limit), high.min(limit));
    }

    let mut step = 0.5 / f64::from(STEPS_PER_BINADE);
    for _ in 0..MAX_ROUNDS {
        if step < FINEST {
            break;
        }
        let mut better = false;
        for factor in [(-step).exp2(), step.exp2()] {
            better |= search.attempt((search.ends.0 * factor).max(low), search.ends.1);
            better |= search.attempt(search.ends.0, (search.ends.1 * factor).min(high));
        }
        if !better {
            step /= 2.0;
        }
    }
    search.ends
}

/// The best ends so far.
struct Search {
    /// Largest magnitudes first: they tell soonest that a range clips too much.
    bins: Vec<Bin>,
    ends: (f64, f64),
    error: f64,
}

impl Search {
    fn new(bins: &[Bin]) -> Self {
        let low = bins.first().map_or(0.0, |bin| bin.low).min(0.0);
        let high = bins.last().map_or(0.0, |bin| bin.high).max(0.0);
        let mut bins = bins.to_vec();
        bins.sort_by(|a, b| b.reach().total_cmp(&a.reach()));
        let mut search = Self {
            bins,
            ends: (low, high),
            error: f64::INFINITY,
        };
        search.attempt(low, high);
        search
    }

    /// Takes these ends if they are better.
    fn attempt(&mut self, low: f64, high: f64) -> bool {
        let affine = Range::around_zero(low as f32, high as f32).affine();
        let levels = Levels::of(affine);
        let mut error = 0.0;
        for bin in &self.bins {
            error += bin.count as f64 * levels.error(bin.low, bin.high);
            if error >= self.error {
                return false;
            }
        }
        (self.ends, self.error) = ((low, high), error);
        true
    }
}

/// The levels of an affine map, as multiples of the scale.
struct Levels {
    scale: f64,
    lowest: f64,
    highest: f64,
}

impl Levels {
    fn of(affine: Affine) -> Self {
        let zero = f64::from(affine.zero_point);
        Self {
            scale: affine.scale.into(),
            lowest: -zero,
            highest: 255.0 - zero,
        }
    }

    /// Mean squared distance to the nearest level of values spread evenly from `low` to `high`.
    fn error(&self, low: f64, high: f64) -> f64 {
        let (a, b) = (low / self.scale, high / self.scale);
        let level = |x: f64| x.round().clamp(self.lowest, self.highest);
        let (level_a, level_b) = (level(a), level(b));
        let (da, db) = (a - level_a, b - level_b);
        let mean = if level_a == level_b {
            (da * da + da * db + db * db) / 3.0
        } else {
            // From level to level the integral of the squared distance is 1/12.
            ((level_b - level_a) / 12.0 + (db.powi(3) - da.powi(3)) / 3.0) / (b - a)
        };
        mean * self.scale * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_by_hand() {
        let levels = Levels::of(Range::around_zero(-5.0, 250.0).affine());
        let close = |low: f64, high: f64, expected: f64| {
            let error = levels.error(low, high);
            assert!((error - expected).abs() < 1e-9, "{low} {high} {error}");
        };
        close(3.25, 3.25, 0.0625);
        close(2.5, 3.5, 1.0 / 12.0);
        close(2.0, 9.0, 1.0 / 12.0);
        close(3.0, 3.5, 1.0 / 12.0);
        close(252.0, 252.0, 4.0);
        close(250.0, 253.0, 3.0); // the integral of x^2 from 0 to 3, over 3
        close(249.0, 253.0, (1.0 / 12.0 + 9.0) / 4.0);
        close(-7.0, -5.0, 4.0 / 3.0);
    }

    #[test]
    fn nothing_but_zeros_has_an_empty_range() {
        assert_eq!(ends(&[]), (0.0, 0.0));
    }

    /// Many values below 1 and one at 100: if it is kept, a step is 0.39 and the error 0.0128; if
    /// not, it costs 99^2 / many, 0.001 for 10^7 and 1 for 10^4.
    #[test]
    fn an_outlier_is_clipped_where_that_pays() {
        let bin = |low, high, count| Bin { low, high, count };
        let bins = |many: u64| {
            let mut bins: Vec<Bin> = (1..1000)
                .map(|i| bin(f64::from(i) / 1e3, f64::from(i + 1) / 1e3, many / 999))
                .collect();
            bins.push(bin(100.0, 100.0, 1));
            bins
        };
        let (low, high) = ends(&bins(10_000_000));
        assert_eq!(low, 0.0);
        assert!((0.98..8.0).contains(&high), "{high}");
        let (_, high) = ends(&bins(10_000));
        assert!(high > 80.0, "{high}");
    }
}
