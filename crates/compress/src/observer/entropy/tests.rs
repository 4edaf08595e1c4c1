use super::*;

/// As the formula is written down: P, Q, both normalized, and their divergence.
fn naive(linear: &Linear, (below, above): (usize, usize)) -> f64 {
    let (start, end) = (linear.below - below, linear.below + above);
    let inside = &linear.counts[start..end];
    let mut p = inside.to_vec();
    p[0] += linear.outliers.0 + linear.counts[..start].iter().sum::<f64>();
    p[end - start - 1] += linear.outliers.1 + linear.counts[end..].iter().sum::<f64>();

    let level = |bin: usize| bin * LEVELS / inside.len();
    let (mut sums, mut used) = ([0.0; LEVELS], [0.0; LEVELS]);
    for (bin, &count) in inside.iter().enumerate() {
        sums[level(bin)] += count;
        used[level(bin)] += f64::from(count > 0.0);
    }
    let q = |bin: usize| sums[level(bin)] / used[level(bin)];
    let (total_p, total_q) = (p.iter().sum::<f64>(), inside.iter().sum::<f64>());
    let filled = p.iter().enumerate().filter(|(_, p)| **p > 0.0);
    filled
        .map(|(bin, p)| p / total_p * (p / total_p / (q(bin) / total_q)).ln())
        .sum()
}

/// A peak near zero, tails of different length, and holes.
fn example() -> Linear {
    let count = |x: f64| (1e4 * (-x / 90.0).exp()).floor() * f64::from(x as u32 % 7 != 3);
    let mut counts: Vec<f64> = (0..=1200)
        .rev()
        .map(|i| count(2.0 * f64::from(i)))
        .collect();
    let below = counts.len();
    counts.extend((0..2048).map(|i| count(f64::from(i))));
    let used = |count: &f64| *count > 0.0;
    let first = counts.iter().position(used).unwrap();
    let end = counts.iter().rposition(used).unwrap() + 1;
    Linear {
        width: 1.0,
        counts: counts[first..end].to_vec(),
        below: below - first,
        outliers: (3.0, 5.0),
    }
}

#[test]
fn the_sums_give_the_divergence() {
    let linear = example();
    let search = Search::new(&linear);
    for limit in [128, 200, 256, 400, 511, 777, 2048] {
        for ends in [
            (up_to(&search.below, limit), up_to(&search.above, limit)),
            (up_to(&search.below, 1), up_to(&search.above, limit)),
        ] {
            let (fast, slow) = (search.divergence.of(ends), naive(&linear, ends));
            assert!((fast - slow).abs() < 1e-10, "{ends:?} {fast} {slow}");
        }
    }
}

#[test]
fn the_search_beats_one_limit_for_both_ends() {
    let linear = example();
    let (below, above) = Search::new(&linear).best();
    let least = naive(&linear, (below, above));
    let search = Search::new(&linear);
    for limit in (128..=2048).step_by(16) {
        let ends = (up_to(&search.below, limit), up_to(&search.above, limit));
        if ends.0 + ends.1 >= LEVELS {
            assert!(naive(&linear, ends) >= least - 1e-12, "{ends:?}");
        }
    }
}

#[test]
fn an_even_distribution_is_not_clipped() {
    let bin = |i: i32| Bin {
        low: f64::from(i) / 1024.0,
        high: f64::from(i + 1) / 1024.0,
        count: 100,
    };
    let bins: Vec<Bin> = (-300..1000).map(bin).collect();
    let (low, high) = ends(&bins);
    assert_eq!((low, high), (-300.0 / 1024.0, 1000.0 / 1024.0));
}

#[test]
fn little_data_is_not_clipped() {
    let bin = |x: f64| Bin {
        low: x,
        high: x,
        count: 1,
    };
    assert_eq!(ends(&[]), (0.0, 0.0));
    for values in [vec![5.0], vec![-5.0], vec![-1.0, 2.0], vec![0.1, 0.2, 7.0]] {
        let bins: Vec<Bin> = values.iter().map(|&x| bin(x)).collect();
        let (low, high) = ends(&bins);
        assert!(low <= values[0].min(0.0) && high >= values[values.len() - 1]);
    }
}
