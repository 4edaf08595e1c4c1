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

/// Why a range was refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// An end is NaN or infinite.
    #[error("a range from {low} to {high} is not finite: give two finite numbers")]
    NonFinite {
        /// The lower end given.
        low: f32,
        /// The upper end given.
        high: f32,
    },
    /// The ends are the wrong way round.
    #[error("a range from {low} to {high} is the wrong way round: give the lower end first")]
    Backwards {
        /// The lower end given.
        low: f32,
        /// The upper end given.
        high: f32,
    },
}

impl Range {
    /// From `low` to `high`, widened to contain zero.
    ///
    /// # Errors
    ///
    /// [`RangeError`] where an end is not finite, or `low` exceeds `high`.
    pub fn new(low: f32, high: f32) -> Result<Self, RangeError> {
        if !(low.is_finite() && high.is_finite()) {
            return Err(RangeError::NonFinite { low, high });
        }
        if low > high {
            return Err(RangeError::Backwards { low, high });
        }
        Ok(Self::around_zero(low, high))
    }

    /// The same for ends known to be finite; an end on the wrong side of zero becomes zero.
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
        let ends = |low, high| Range::new(low, high).map(|range| (range.low(), range.high()));
        assert_eq!(ends(-1.0, 2.0), Ok((-1.0, 2.0)));
        assert_eq!(ends(1.0, 2.0), Ok((0.0, 2.0)));
        assert_eq!(ends(-2.0, -1.0), Ok((-2.0, 0.0)));
        assert!(Range::new(-0.0, 0.0).unwrap().low().is_sign_positive());
    }

    #[test]
    fn senseless_ends_are_refused() {
        let error = Range::new(f32::NAN, 1.0).unwrap_err();
        assert!(error.to_string().contains("not finite"), "{error}");
        assert!(Range::new(0.0, f32::INFINITY).is_err());
        let error = Range::new(3.0, 2.0).unwrap_err();
        assert!(error.to_string().contains("wrong way round"), "{error}");
    }
}
