//! Exact fractions: `24/t` must not be rounded before it is multiplied.

/// A fraction in lowest terms, never negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fraction {
    above: u128,
    below: u128,
}

/// Every operation is `None` where it does not fit, or divides by 0.
impl Fraction {
    pub(super) const ONE: Self = Self::whole(1);

    pub(super) const fn whole(number: u64) -> Self {
        Self {
            above: number as u128,
            below: 1,
        }
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let left = self.above.checked_mul(other.below)?;
        let right = other.above.checked_mul(self.below)?;
        Self::reduced(
            left.checked_add(right)?,
            self.below.checked_mul(other.below)?,
        )
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        Self::reduced(
            self.above.checked_mul(other.above)?,
            self.below.checked_mul(other.below)?,
        )
    }

    pub(super) fn over(self, other: Self) -> Option<Self> {
        Self::reduced(
            self.above.checked_mul(other.below)?,
            self.below.checked_mul(other.above)?,
        )
    }

    /// Rounded up: a part of a byte takes a whole one.
    pub(super) fn ceil(self) -> Option<u64> {
        u64::try_from(self.above.div_ceil(self.below)).ok()
    }

    fn reduced(above: u128, below: u128) -> Option<Self> {
        let common = greatest_common_divisor(above, below);
        (below > 0).then(|| Self {
            above: above / common,
            below: below / common,
        })
    }
}

fn greatest_common_divisor(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirds_add_up() {
        let third = Fraction::ONE.over(Fraction::whole(3)).unwrap();
        let two = third.plus(third).unwrap();
        assert_eq!(two.plus(third), Some(Fraction::ONE));
        assert_eq!(two.ceil(), Some(1));
        assert_eq!(Fraction::ONE.ceil(), Some(1));
    }

    #[test]
    fn what_does_not_fit_is_none() {
        let most = Fraction::whole(u64::MAX);
        let square = most.times(most).unwrap();
        assert_eq!(square.ceil(), None);
        assert_eq!(square.times(most), None);
        assert_eq!(square.over(most), Some(most));
        assert_eq!(most.over(Fraction::whole(0)), None);
    }
}
