//! The range that holds a percentage of the values.

use super::histogram::Bin;

/// Ends such that on either side at most half of what `percent` leaves is outside.
///
/// They are the outer edges of the bins in which the quantiles lie.
pub(super) fn ends(bins: &[Bin], percent: f64) -> (f64, f64) {
    let total: u64 = bins.iter().map(|bin| bin.count).sum();
    // 100 - 99.9 is a little less than 0.1.
    let clipped = (total as f64 * (100.0 - percent) / 200.0 * (1.0 + 1e-9)) as u64;
    let low = reached(bins.iter(), clipped).map_or(0.0, |bin| bin.low);
    let high = reached(bins.iter().rev(), clipped).map_or(0.0, |bin| bin.high);
    (low, high)
}

/// The first bin that can't be left out without leaving out more than `clipped` values.
fn reached<'a>(mut bins: impl Iterator<Item = &'a Bin>, clipped: u64) -> Option<&'a Bin> {
    let mut seen = 0;
    bins.find(|bin| {
        seen += bin.count;
        seen > clipped
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_rest_on_either_side() {
        let bin = |low, high, count| Bin { low, high, count };
        let bins = [
            bin(-9.0, -8.0, 1),
            bin(-2.0, -1.0, 500),
            bin(1.0, 2.0, 1497),
            bin(7.0, 8.0, 1),
            bin(8.0, 9.0, 1),
        ];
        // 99.9 % of 2000 leave one for either side.
        assert_eq!(ends(&bins, 99.9), (-2.0, 8.0));
        assert_eq!(ends(&bins, 99.8), (-2.0, 2.0));
        assert_eq!(ends(&bins, 99.91), (-9.0, 9.0));
        assert_eq!(ends(&bins, 100.0), (-9.0, 9.0));
        assert_eq!(ends(&[], 99.99), (0.0, 0.0));
    }
}
