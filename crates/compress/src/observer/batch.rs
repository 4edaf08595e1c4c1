//! What one pass over a batch finds.

use super::ObserveError;

/// The extremes of a batch, and how many of its values are zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) min: f32,
    pub(super) max: f32,
    pub(super) zeros: u64,
}

impl Batch {
    /// Of `values`, one or more; with none, `min` exceeds `max`.
    ///
    /// # Errors
    ///
    /// [`ObserveError::NonFinite`] where one of them is.
    pub(super) fn of(values: &[f32]) -> Result<Self, ObserveError> {
        let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
        let (mut zeros, mut finite) = (0, true);
        for &x in values {
            min = if x < min { x } else { min };
            max = if x > max { x } else { max };
            zeros += u64::from(x == 0.0);
            finite &= x.is_finite();
        }
        if finite {
            return Ok(Self { min, max, zeros });
        }
        let how_many = |bad: fn(f32) -> bool| values.iter().filter(|&&x| bad(x)).count();
        Err(ObserveError::NonFinite {
            nan: how_many(f32::is_nan),
            infinite: how_many(f32::is_infinite),
            values: values.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_and_zeros() {
        let batch = Batch::of(&[0.0, 2.0, -0.0, -3.0]).unwrap();
        let (min, max, zeros) = (-3.0, 2.0, 2);
        assert_eq!(batch, Batch { min, max, zeros });
    }

    #[test]
    fn bad_values_are_counted() {
        let error = Batch::of(&[1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY]).unwrap_err();
        let (nan, infinite, values) = (1, 2, 4);
        let expected = ObserveError::NonFinite {
            nan,
            infinite,
            values,
        };
        assert_eq!(error, expected);
    }
}
