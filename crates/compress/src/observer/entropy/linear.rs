//! Bins of equal width on either side of zero.

use super::super::histogram::Bin;

/// Bins on one side of zero.
pub(super) const BINS: usize = 2048;

/// Share of the values that may lie far outside, and then counts as outliers.
const OUTLIERS: f64 = 1e-4;

/// How often what was seen falls into bins of equal width, zeros left out.
#[derive(Debug, PartialEq)]
pub(super) struct Linear {
    /// Width of a bin.
    pub(super) width: f64,
    /// Counts upwards from the lowest bin with something in it to the highest.
    pub(super) counts: Vec<f64>,
    /// How many of the bins lie below zero.
    pub(super) below: usize,
    /// Values below the lowest bin and above the highest.
    pub(super) outliers: (f64, f64),
}

impl Linear {
    /// From a power of two down to zero 2048 bins, on both sides: the power of two next above the
    /// largest magnitude, so that each of `bins`, which must not be empty, falls into one.
    ///
    /// If nearly all values lie within a quarter of that, then 256 levels have less than two bins
    /// each and no range could be told from another. The power of two is halved until it is not so.
    ///
    /// The bin next to zero counts as often as its neighbour, as in NVIDIA's pytorch-quantization:
    /// else a peak there, which any range maps to zero, would decide.
    pub(super) fn new(bins: &[Bin]) -> Self {
        let total: u64 = bins.iter().map(|bin| bin.count).sum();
        let beyond = |limit: f64| -> u64 {
            let outside = bins.iter().filter(|bin| bin.reach() > limit);
            outside.map(|bin| bin.count).sum()
        };
        let mut top = power_of_two_above(bins.iter().map(Bin::reach).fold(0.0, f64::max));
        while beyond(top / 4.0) as f64 <= total as f64 * OUTLIERS {
            top /= 2.0;
        }

        let mut below = Side::new(top);
        let mut above = Side::new(top);
        for bin in bins {
            if bin.low < 0.0 {
                below.add(-bin.high, -bin.low, bin.count as f64);
            } else {
                above.add(bin.low, bin.high, bin.count as f64);
            }
        }
        let (below, above) = (below.finished(), above.finished());
        Self {
            width: above.width,
            below: below.counts.len(),
            outliers: (below.outliers, above.outliers),
            counts: below.counts.into_iter().rev().chain(above.counts).collect(),
        }
    }
}

/// Bins by magnitude.
struct Side {
    width: f64,
    counts: Vec<f64>,
    outliers: f64,
}

impl Side {
    fn new(top: f64) -> Self {
        Self {
            width: top / BINS as f64,
            counts: vec![0.0; BINS],
            outliers: 0.0,
        }
    }

    /// Only the bin of the smallest values can be wider than ours; it is spread evenly.
    fn add(&mut self, near: f64, far: f64, count: f64) {
        let first = (near / self.width) as usize;
        if first >= BINS {
            self.outliers += count;
            return;
        }
        let end = ((far / self.width).ceil() as usize).clamp(first + 1, BINS);
        for bin in &mut self.counts[first..end] {
            *bin += count / (end - first) as f64;
        }
    }

    fn finished(mut self) -> Self {
        let used = self.counts.iter().rposition(|&count| count > 0.0);
        self.counts.truncate(used.map_or(0, |last| last + 1));
        if let [first, second, ..] = &mut self.counts[..] {
            *first = *second;
        }
        self
    }
}

/// The smallest power of two above a positive `x`.
fn power_of_two_above(x: f64) -> f64 {
    let exponent = x.to_bits() >> (f64::MANTISSA_DIGITS - 1);
    f64::from_bits((exponent + 1) << (f64::MANTISSA_DIGITS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bin(low: f64, high: f64, count: u64) -> Bin {
        Bin { low, high, count }
    }

    #[test]
    fn powers_of_two() {
        assert_eq!(power_of_two_above(1.0), 2.0);
        assert_eq!(power_of_two_above(1.999), 2.0);
        assert_eq!(power_of_two_above(1e-40), 2f64.powi(-132));
    }

    #[test]
    fn both_sides_of_zero() {
        let width = 1.0 / 1024.0;
        let linear = Linear::new(&[
            bin(-2.0 * width, -1.5 * width, 3),
            bin(0.0, width, 90),
            bin(width, 1.5 * width, 4),
            bin(1.5 * width, 2.0 * width, 5),
            bin(1.0, 1.0, 6),
        ]);
        assert_eq!((linear.width, linear.below), (width, 2));
        assert_eq!(linear.counts[..5], [3.0, 3.0, 9.0, 9.0, 0.0]);
        assert_eq!((linear.counts.len(), linear.counts[1026]), (1027, 6.0));
        assert_eq!(linear.outliers, (0.0, 0.0));
    }

    #[test]
    fn a_far_outlier_does_not_widen_the_bins_of_many() {
        let many = [bin(-1.0, -1.0, 50_000), bin(0.0, 1.0, 50_000)];
        let linear = Linear::new(&[many[0], many[1], bin(1e6, 1e6, 1)]);
        assert_eq!(linear.width, 1.0 / 1024.0);
        assert_eq!(linear.outliers, (0.0, 1.0));
        let inside = linear.counts.iter().sum::<f64>();
        assert!((inside - 100_000.0).abs() < 0.1, "{inside}");
        // A hundred such are no outliers: they decide the bins.
        let linear = Linear::new(&[many[0], many[1], bin(1e6, 1e6, 100)]);
        assert_eq!(linear.width, 512.0);
    }
}
