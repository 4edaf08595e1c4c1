//! Counts of values in bins that follow the floating-point format.
//!
//! A bin holds the values with one sign, one exponent and the same first ten bits after the
//! leading one: 1024 bins to a factor of two, each 1/2048 to 1/1024 of its values wide. The largest
//! magnitude seen decides which 24 binades are kept; what is smaller, less than 2^-24 to 2^-23 of
//! it, shares one bin a side. When the largest grows, whole binades move into that one. So the
//! counts depend on what was seen, never on the order, and an outlier costs the rest no resolution.

use super::batch::Batch;

const FRACTION_BITS: u32 = 10;
const PER_BINADE: usize = 1 << FRACTION_BITS;
const BINADES: u32 = 24;
/// Bins on one side of zero: the shared one, then those of the binades.
const SIDE: usize = 1 + BINADES as usize * PER_BINADE;

/// Bits of an f32 after those that choose its bin.
const SHIFT: u32 = f32::MANTISSA_DIGITS - 1 - FRACTION_BITS;
const MAGNITUDE: u32 = u32::MAX >> 1;

/// Values between `low` and `high`, which have one sign; 0 itself is in no bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bin {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) count: u64,
}

impl Bin {
    /// The largest magnitude in it.
    pub(super) fn reach(&self) -> f64 {
        self.high.max(-self.low)
    }
}

/// 192 KiB, and as much again once a negative value was seen.
#[derive(Clone)]
pub(super) struct Histogram {
    /// Upwards from zero, then downwards from zero.
    counts: Vec<u64>,
    /// Key of the first bin above the shared one.
    first: u32,
    /// Those among the counts of the first shared bin.
    zeros: u64,
}

/// The exponent and the first bits after the leading one; grows with the magnitude.
fn key(bits: u32) -> u32 {
    (bits & MAGNITUDE) >> SHIFT
}

/// The smallest magnitude with this key.
fn edge(key: u32) -> f64 {
    f32::from_bits(key << SHIFT).into()
}

impl Histogram {
    pub(super) fn new() -> Self {
        Self {
            counts: vec![0; SIDE],
            first: 1 << FRACTION_BITS,
            zeros: 0,
        }
    }

    /// Counts the `values` of `batch`.
    pub(super) fn add(&mut self, values: &[f32], batch: &Batch) {
        self.reach(batch.max.max(-batch.min));
        if batch.min < 0.0 {
            self.counts.resize(2 * SIDE, 0);
        }
        self.zeros += batch.zeros;
        for &x in values {
            // Adding 0 turns -0 into 0.
            let bits = (x + 0.0).to_bits();
            let side = (bits >> 31) as usize * SIDE;
            self.counts[side + (key(bits) + 1).saturating_sub(self.first) as usize] += 1;
        }
    }

    /// Moves the binades so that the highest holds `magnitude`, if it does not already.
    fn reach(&mut self, magnitude: f32) {
        let exponent = key(magnitude.to_bits()) >> FRACTION_BITS;
        // Subnormal values have no binade of their own.
        let first = (exponent + 1).saturating_sub(BINADES).max(1) << FRACTION_BITS;
        if first <= self.first {
            return;
        }
        let moved = ((first - self.first) as usize).min(SIDE - 1);
        self.first = first;
        for side in self.counts.chunks_exact_mut(SIDE) {
            side[0] += side[1..=moved].iter().sum::<u64>();
            side.copy_within(1 + moved.., 1);
            side[SIDE - moved..].fill(0);
        }
    }

    /// The bins with something in them, upwards, cut off at `min` and `max`, the extremes seen.
    pub(super) fn bins(&self, min: f32, max: f32) -> Vec<Bin> {
        let (min, max) = (f64::from(min), f64::from(max));
        let (above, below) = self.counts.split_at(SIDE);
        let near = |i: usize| match i {
            0 => 0.0,
            _ => edge(self.first + i as u32 - 1),
        };
        let far = |i: usize| edge(self.first + i as u32);

        let below = below.iter().enumerate().rev().map(|(i, &count)| Bin {
            low: min.max(-far(i)),
            high: max.min(-near(i)),
            count,
        });
        let above = above.iter().enumerate().map(|(i, &count)| Bin {
            low: min.max(near(i)),
            high: max.min(far(i)),
            count: if i == 0 { count - self.zeros } else { count },
        });
        below.chain(above).filter(|bin| bin.count > 0).collect()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("zeros", &self.zeros)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
