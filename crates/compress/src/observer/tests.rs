use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;

fn observer(batches: &[&[f32]]) -> Observer {
    let mut observer = Observer::new();
    for batch in batches {
        observer.see(batch).unwrap();
    }
    observer
}

/// The ends of the method's range.
fn ends(observer: &Observer, method: Method) -> (f32, f32) {
    let range = observer.range(method).unwrap();
    (range.low(), range.high())
}

/// Uniform in (0, 1).
fn uniform(count: usize) -> impl Iterator<Item = f64> {
    let mut state = 1u64;
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    })
    .take(count)
}

/// Box and Muller's.
fn gaussian(count: usize) -> Vec<f32> {
    let uniform: Vec<f64> = uniform(2 * count).collect();
    let normal = |pair: &[f64]| ((-2.0 * pair[0].ln()).sqrt() * (TAU * pair[1]).cos()) as f32;
    uniform.chunks(2).map(normal).collect()
}

fn squared_error(values: &[f32], range: Range) -> f64 {
    let affine = range.affine();
    let errors = values
        .iter()
        .map(|&x| f64::from(affine.real(affine.level(x)) - x).powi(2));
    errors.sum::<f64>() / values.len() as f64
}

#[test]
fn small_cases_by_hand() {
    let observer = observer(&[&[-1.0, 10.0], &[], &[-3.0, 0.0, 20.0]]);
    assert_eq!((observer.count(), observer.batches()), (5, 2));
    assert_eq!((observer.min(), observer.max()), (Some(-3.0), Some(20.0)));
    assert_eq!(ends(&observer, Method::MinMax), (-3.0, 20.0));
    assert_eq!(ends(&observer, Method::Average), (-1.2, 11.0));
    assert_eq!(ends(&observer, Method::Percentile(99.99)), (-3.0, 20.0));
}

#[test]
fn a_percentile_ends_at_the_edge_of_a_bin() {
    let values: Vec<f32> = (1..=1000).map(|i| i as f32).collect();
    let observer = observer(&[&values]);
    // 5 of 1000 above; bins from 512 to 1024 are half a unit wide.
    let range = observer.range(Method::Percentile(99.0)).unwrap();
    assert_eq!((range.low(), range.high()), (0.0, 995.5));
    assert_eq!(observer.saturated(range), 0.005);
}

#[test]
fn without_values_there_is_no_range() {
    let mut observer = Observer::new();
    observer.see(&[]).unwrap();
    for method in Method::ALL {
        assert_eq!(observer.range(method), Err(ObserveError::Nothing));
    }
    assert_eq!((observer.min(), observer.batches()), (None, 0));
    assert_eq!(observer.saturated(Range::default()), 0.0);
}

#[test]
fn a_bad_batch_is_counted_and_forgotten() {
    let mut observer = observer(&[&[1.0]]);
    let error = observer.see(&[f32::NAN, 9.0, f32::INFINITY]).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("1 NaN and 1 infinite among 3"), "{text}");
    assert_eq!((observer.count(), observer.max()), (1, Some(1.0)));
    assert!(observer.range(Method::Percentile(f64::NAN)).is_err());
}

#[test]
fn one_value_repeated_is_kept_whole() {
    for x in [5.0, -5.0, 1e-30, -1e30, 0.0, f32::MAX, f32::from_bits(1)] {
        for values in [&[x][..], &[x, x, x]] {
            let observer = observer(&[values]);
            for method in Method::ALL {
                let range = observer.range(method).unwrap();
                assert_eq!(range, Range::around_zero(x, x), "{method}");
                assert_eq!(observer.saturated(range), 0.0);
            }
        }
    }
}

#[test]
fn a_gaussian_is_clipped_a_little() {
    let values = gaussian(200_000);
    let observer = observer(&values.chunks(10_000).collect::<Vec<_>>());
    let (low, high) = ends(&observer, Method::Percentile(99.0));
    assert!((low + 2.576).abs() < 0.03 && (high - 2.576).abs() < 0.03);

    let whole = squared_error(&values, observer.range(Method::MinMax).unwrap());
    for method in [Method::Entropy, Method::Mse] {
        let range = observer.range(method).unwrap();
        assert!(
            range.low() < -2.0 && range.high() > 2.0,
            "{method} {range:?}"
        );
        assert!(observer.saturated(range) < 0.05, "{method} {range:?}");
    }
    let mse = squared_error(&values, observer.range(Method::Mse).unwrap());
    assert!(mse <= whole, "{mse} {whole}");
}

/// The histogram's best range is close to the best that a search with all values finds.
#[test]
fn the_least_squared_error_is_found() {
    let values: Vec<f32> = gaussian(20_000).iter().map(|x| x.abs().powi(3)).collect();
    let range = observer(&[&values]).range(Method::Mse).unwrap();
    let largest = values.iter().copied().fold(0.0, f32::max);
    let candidates = (1..=200).map(|i| Range::around_zero(0.0, largest * i as f32 / 200.0));
    let best = candidates.map(|range| squared_error(&values, range));
    let best = best.fold(f64::INFINITY, f64::min);
    let found = squared_error(&values, range);
    assert!(found <= best * 1.02, "{found} {best} {range:?}");
}

/// After a ReLU: any share of exact zeros leaves the ranges as they are without.
#[test]
fn zeros_do_not_count() {
    let positive: Vec<f32> = gaussian(50_000).iter().map(|x| x.abs()).collect();
    let zeros = vec![0.0; 900_000];
    let without = observer(&[&positive]);
    let with = observer(&[&positive, &zeros]);
    for method in [Method::Percentile(99.9), Method::Entropy, Method::Mse] {
        assert_eq!(ends(&with, method), ends(&without, method), "{method}");
        assert_eq!(ends(&with, method).0, 0.0);
        assert!(ends(&with, method).1 > 2.0, "{method}");
    }
}

#[test]
fn the_sign_does_not_matter() {
    let values: Vec<f32> = gaussian(5_000).iter().map(|x| x.abs()).collect();
    let negated: Vec<f32> = values.iter().map(|x| -x).collect();
    let (values, negated) = (observer(&[&values]), observer(&[&negated]));
    for method in Method::ALL {
        // Levels of the divergence are counted from below, and differ by a bin from above.
        if method == Method::Entropy {
            continue;
        }
        let (low, high) = ends(&values, method);
        assert_eq!(ends(&negated, method), (-high, -low), "{method}");
    }
}

#[test]
fn the_unit_does_not_matter() {
    let values: Vec<f32> = gaussian(5_000).iter().map(|x| x.powi(3)).collect();
    // A power of two scales f32 exactly.
    for unit in [2f32.powi(-100), 2f32.powi(100)] {
        let scaled: Vec<f32> = values.iter().map(|x| x * unit).collect();
        let (plain, scaled) = (observer(&[&values]), observer(&[&scaled]));
        for method in Method::ALL {
            let (low, high) = ends(&plain, method);
            assert_eq!(ends(&scaled, method), (low * unit, high * unit), "{method}");
        }
    }
}

#[test]
fn a_huge_outlier_is_clipped_but_not_by_squared_error() {
    let mut values = gaussian(50_000);
    values.push(4e6);
    let observer = observer(&[&values]);
    for method in [Method::Percentile(99.99), Method::Entropy] {
        let (low, high) = ends(&observer, method);
        assert!(low < -2.5 && (2.5..6.0).contains(&high), "{method} {high}");
    }
    // Its square outweighs all the rest, lost in one level.
    assert!(ends(&observer, Method::Mse).1 > 3.9e6);
    assert_eq!(ends(&observer, Method::MinMax).1, 4e6);
}

#[test]
fn the_order_of_batches_matters_to_the_average_only() {
    let values: Vec<f32> = gaussian(3_000).iter().map(|x| x.powi(5)).collect();
    let mut sorted = values.clone();
    sorted.sort_by(f32::total_cmp);
    let (one, two) = (
        observer(&values.chunks(100).collect::<Vec<_>>()),
        observer(&sorted.chunks(7).collect::<Vec<_>>()),
    );
    for method in Method::ALL {
        let equal = one.range(method) == two.range(method);
        assert_eq!(equal, method != Method::Average, "{method}");
    }
}

/// Finite values of any magnitude, often of a usual one, often zero.
fn values() -> impl Strategy<Value = Vec<f32>> {
    let value = prop_oneof![
        4 => -10.0f32..10.0,
        1 => Just(0.0f32),
        1 => any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |x| x.is_finite()),
    ];
    proptest::collection::vec(value, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_range_holds_zero_and_no_more_than_was_seen(
        batches in proptest::collection::vec(values(), 1..4)
    ) {
        let batches: Vec<&[f32]> = batches.iter().map(Vec::as_slice).collect();
        let observer = observer(&batches);
        let (least, most) = (observer.min().unwrap().min(0.0), observer.max().unwrap().max(0.0));
        for method in Method::ALL {
            let (low, high) = ends(&observer, method);
            prop_assert!(low <= 0.0 && 0.0 <= high, "{method} {low} {high}");
            prop_assert!(least <= low && high <= most, "{method} {low} {high}");
            let share = observer.saturated(observer.range(method).unwrap());
            prop_assert!((0.0..=1.0).contains(&share), "{method} {share}");
        }
        prop_assert_eq!(observer.saturated(observer.range(Method::MinMax).unwrap()), 0.0);
    }
}
