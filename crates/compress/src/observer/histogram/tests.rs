use super::*;

/// The bins after batches, and the extremes.
fn bins(batches: &[&[f32]]) -> Vec<Bin> {
    let mut histogram = Histogram::new();
    let (mut min, mut max) = (f32::INFINITY, f32::NEG_INFINITY);
    for values in batches {
        let batch = Batch::of(values).unwrap();
        histogram.add(values, &batch);
        (min, max) = (min.min(batch.min), max.max(batch.max));
    }
    histogram.bins(min, max)
}

fn bin(low: f64, high: f64, count: u64) -> Bin {
    Bin { low, high, count }
}

#[test]
fn small_cases_by_hand() {
    assert_eq!(bins(&[&[5.0, 5.0]]), [bin(5.0, 5.0, 2)]);
    assert_eq!(bins(&[&[0.0, -0.0]]), []);
    let (width, half) = (1.0 / 1024.0, 1.0 / 2048.0);
    assert_eq!(
        bins(&[&[-1.5, 0.0, 1.0, 3.0], &[0.75, -1.0]]),
        [
            bin(-1.5, -1.5, 1),
            bin(-1.0 - width, -1.0, 1),
            bin(0.75, 0.75 + half, 1),
            bin(1.0, 1.0 + width, 1),
            bin(3.0, 3.0, 1),
        ]
    );
}

#[test]
fn small_values_share_a_bin_once_a_large_one_came() {
    let (tiny, subnormal) = (1e-30, f32::from_bits(1));
    let expected = [
        bin(-f64::from(tiny), 0.0, 1),
        bin(0.0, 2f64.powi(-23), 2),
        bin(1.0, 1.0, 1),
    ];
    assert_eq!(bins(&[&[tiny, -tiny, subnormal, 0.0, 1.0]]), expected);
    assert_eq!(bins(&[&[subnormal], &[0.0, -tiny, tiny], &[1.0]]), expected);
}

#[test]
fn the_whole_range_of_f32_has_bins() {
    let values = [f32::MIN, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)];
    for x in values {
        let bins = bins(&[&[x]]);
        assert_eq!(bins.len(), 1);
        assert!(bins[0].low <= f64::from(x) && bins[0].high >= f64::from(x));
        assert!(bins[0].reach().is_finite() && bins[0].reach() > 0.0);
    }
    assert_eq!(bins(&[&values]).len(), 3);
}

/// Moving by some binades at a time is moving by all at once.
#[test]
fn the_order_does_not_matter() {
    let values: Vec<f32> = (-120..=120).map(|e| 1.01 * 2f32.powi(e)).collect();
    let upwards: Vec<&[f32]> = values.chunks(3).collect();
    let downwards: Vec<&[f32]> = values.chunks(7).rev().collect();
    assert_eq!(bins(&upwards), bins(&[&values]));
    assert_eq!(bins(&downwards), bins(&[&values]));
}
