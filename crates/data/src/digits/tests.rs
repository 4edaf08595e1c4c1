use super::*;

#[test]
fn the_splits_are_fixed_and_labelled_0_to_9() {
    let train = Digits::load(Split::Train, 8).unwrap();
    let val = Digits::load(Split::Val, 8).unwrap();
    assert_eq!(
        (train.len(), val.len(), train.len() + val.len()),
        (1437, 360, 1797)
    );
    assert_eq!(train.name(), "digits (1437 images)");
    for set in [&train, &val] {
        assert_eq!(set.classes().len(), 10);
        for digit in 0..10 {
            assert!(set.labels.contains(&digit));
        }
    }
    // The first lines of the file are 0, 1, 2, 3, 4, 5: the validation split has lines 0 and 5.
    assert_eq!(
        (&val.labels[..2], &train.labels[..4]),
        (&[0, 5][..], &[1, 2, 3, 4][..])
    );
}

#[test]
fn the_training_split_has_mean_0_and_deviation_1() {
    let train = Digits::load(Split::Train, 8).unwrap();
    let values: Vec<f64> = (0..train.len())
        .flat_map(|index| train.sample(index, None).unwrap().pixels)
        .map(f64::from)
        .collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
    assert!(
        mean.abs() < 1e-5 && (variance - 1.0).abs() < 1e-5,
        "mean {mean}, variance {variance}"
    );
}

#[test]
fn enlarging_keeps_the_originals_and_equal_channels() {
    let small = Digits::load(Split::Val, 8)
        .unwrap()
        .sample(3, None)
        .unwrap();
    let large = Digits::load(Split::Val, 24)
        .unwrap()
        .sample(3, None)
        .unwrap();
    assert_eq!(
        (small.pixels.len(), large.pixels.len()),
        (3 * 8 * 8, 3 * 24 * 24)
    );
    assert_eq!(small.label, large.label);
    assert_eq!(large.pixels[..24 * 24], large.pixels[2 * 24 * 24..]);
    // At three times the size, the middle of every 3x3 block lies on an original pixel.
    for y in 0..8 {
        for x in 0..8 {
            let (original, enlarged) = (
                small.pixels[y * 8 + x],
                large.pixels[(3 * y + 1) * 24 + 3 * x + 1],
            );
            assert!((original - enlarged).abs() < 1e-5);
        }
    }
}

#[test]
fn a_view_is_a_function_of_its_seed() {
    let digits = Digits::load(Split::Train, 32).unwrap();
    let view = |seed| digits.sample(7, Some(seed)).unwrap();
    assert_eq!(view(1), view(1));
    assert!((2..10).any(|seed| view(seed) != view(1)));
}

#[test]
fn a_shift_moves_and_fills_with_background() {
    let plane = [1.0, 2.0, 3.0, 4.0];
    assert_eq!(shifted(&plane, 2, 0, 0), plane);
    assert_eq!(shifted(&plane, 2, 1, 0), [0.0, 1.0, 0.0, 3.0]);
    assert_eq!(shifted(&plane, 2, 0, -1), [3.0, 4.0, 0.0, 0.0]);
}

#[test]
fn wrong_sizes_and_indices_are_errors() {
    assert!(matches!(
        Digits::load(Split::Val, 7),
        Err(DataError::ImageSize { size: 7, .. })
    ));
    let val = Digits::load(Split::Val, 8).unwrap();
    assert!(matches!(
        val.sample(360, None),
        Err(DataError::Index { index: 360, .. })
    ));
}

#[test]
fn a_seed_draws_another_split_of_the_same_size() {
    let load = |split, seed| Digits::load_drawn(split, 8, seed).unwrap();
    let (train, val) = (load(Split::Train, 1), load(Split::Val, 1));
    assert_eq!((train.len(), val.len()), (1437, 360));
    let same = load(Split::Val, 1);
    assert_eq!((&val.images, &val.labels), (&same.images, &same.labels));
    assert_ne!(val.images, load(Split::Val, 2).images);
    assert_ne!(val.images, Digits::load(Split::Val, 8).unwrap().images);
}
