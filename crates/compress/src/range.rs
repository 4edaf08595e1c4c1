//! A range that contains zero.

use leanburn_levers::Affine;

/// From `low` to `high`, both finite and included: `low <= 0 <= high`.
///
/// Zero is always inside because padding and ReLU make it the one value that must be exact
/// (Jacob et al. 2018, <https://arxiv.org/abs/1712.05877>, section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    low: f32,
    high: f32,
}

impl Range {
    /// From `low` to `high`, both finite, widened to contain zero.
    pub(crate) fn around_zero(low: f32, high: f32) -> Self {
        // Adding 0 turns -0 into 0, so that equal ranges print alike.
        Self {
            low: low.min(0.0) + 0.0,
            high: high.max(0.0) + 0.0,
        }
    }

    /// The rounding whose levels span this range.
    pub fn affine(self) -> Affine {
        Affine::spanning(self.low, self.high)
    }

    /// The lower end, at most 0.
    pub fn low(self) -> f32 {
        self.low
    }

    /// The upper end, at least 0.
    pub fn high(self) -> f32 {
        self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_widened_to_zero() {
        let ends = |low, high| {
            let range = Range::around_zero(low, high);
            (range.low(), range.high())
        };
        assert_eq!(ends(-1.0, 2.0), (-1.0, 2.0));
        assert_eq!(ends(1.0, 2.0), (0.0, 2.0));
        assert_eq!(ends(-2.0, -1.0), (-2.0, 0.0));
        assert!(ends(-0.0, 0.0).0.is_sign_positive());
    }
}
