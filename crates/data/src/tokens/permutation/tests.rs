use super::Permutation;

#[test]
fn every_number_comes_once() {
    for len in (1..70).chain([255, 256, 257, 1000, 4097]) {
        for seed in [0, 7] {
            let order = Permutation::new(len, seed);
            let mut seen: Vec<u64> = (0..len).map(|index| order.at(index)).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..len), "{len}");
        }
    }
}

#[test]
fn seeds_make_orders() {
    let order = |seed| -> Vec<u64> {
        (0..100)
            .map(|index| Permutation::new(100, seed).at(index))
            .collect()
    };
    assert_ne!(order(0), order(1));
    assert_ne!(order(0), (0..100).collect::<Vec<_>>());
    let whole = Permutation::new(u64::MAX, 3);
    assert_ne!(whole.at(0), whole.at(1));
}
