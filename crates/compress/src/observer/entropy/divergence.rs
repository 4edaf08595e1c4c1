//! The divergence of a quantized distribution from the seen one.

use super::linear::Linear;

pub(super) const LEVELS: usize = 256;

/// KL(P || Q) of any range, in a time that depends on the levels only: within a level, Q is one
/// number, so sums over the bins before each bin are enough.
pub(super) struct Divergence<'a> {
    linear: &'a Linear,
    sums: Vec<Sums>,
    total: f64,
}

/// Over all bins before one.
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    not_empty: f64,
    n_ln_n: f64,
}

impl<'a> Divergence<'a> {
    pub(super) fn new(linear: &'a Linear) -> Self {
        let mut sum = Sums::default();
        let mut sums = vec![sum];
        for &count in &linear.counts {
            sum.count += count;
            sum.not_empty += f64::from(count > 0.0);
            sum.n_ln_n += n_ln_n(count);
            sums.push(sum);
        }
        Self {
            linear,
            sums,
            total: sum.count + linear.outliers.0 + linear.outliers.1,
        }
    }

    /// With so many bins below and above zero: at least two, the outermost not empty.
    pub(super) fn of(&self, (below, above): (usize, usize)) -> f64 {
        let Linear {
            below: zero,
            outliers,
            counts,
            ..
        } = self.linear;
        let (start, end) = (zero - below, zero + above);
        let (before, after) = (self.sums[start], self.sums[end]);
        let edge = |level: usize| self.sums[start + (level * (end - start)).div_ceil(LEVELS)];

        // The sum of P (ln P - ln Q), first without outliers, and ln Q of the outermost bins.
        let mut sum = after.n_ln_n - before.n_ln_n;
        let (mut first, mut last) = (None, 0.0);
        for level in 0..LEVELS {
            let (from, to) = (edge(level), edge(level + 1));
            let (count, not_empty) = (to.count - from.count, to.not_empty - from.not_empty);
            if not_empty > 0.0 {
                last = (count / not_empty).ln();
                first.get_or_insert(last);
                sum -= count * last;
            }
        }
        let low = outliers.0 + before.count;
        let high = self.total - outliers.0 - after.count;
        let add = |count: f64, outside: f64, ln_q: f64| {
            n_ln_n(count + outside) - n_ln_n(count) - outside * ln_q
        };
        sum += add(counts[start], low, first.unwrap_or(last));
        sum += add(counts[end - 1], high, last);
        sum / self.total + ((after.count - before.count) / self.total).ln()
    }
}

fn n_ln_n(n: f64) -> f64 {
    if n > 0.0 { n * n.ln() } else { 0.0 }
}
