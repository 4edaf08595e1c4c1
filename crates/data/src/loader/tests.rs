mod moody;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::{DataError, Digits, HostBatch, Split};
use moody::{Moody, moody};

fn config(batch: usize, workers: usize) -> LoaderConfig {
    LoaderConfig {
        batch,
        workers,
        seed: 3,
        shuffle: true,
        augment: true,
        strict: false,
    }
}

fn collect(batches: Batches) -> Vec<HostBatch> {
    batches.map(Result::unwrap).collect()
}

/// In the source's order.
fn plain(source: &Arc<Moody>, batch: usize, workers: usize) -> Loader {
    let config = LoaderConfig {
        shuffle: false,
        ..config(batch, workers)
    };
    Loader::new(source.clone(), config)
}

#[test]
fn any_number_of_workers_gives_the_same_batches() {
    let digits = Arc::new(Digits::load(Split::Val, 8).unwrap());
    let epoch =
        |workers, epoch| collect(Loader::new(digits.clone(), config(50, workers)).epoch(epoch, 0));
    let reference = epoch(0, 4);
    assert_eq!(
        reference.iter().map(HostBatch::len).collect::<Vec<_>>(),
        [50, 50, 50, 50, 50, 50, 50, 10]
    );
    for workers in [1, 2, 5, 20] {
        assert_eq!(epoch(workers, 4), reference);
    }
    assert_ne!(epoch(0, 5), reference);
}

#[test]
fn an_epoch_visits_every_image_once_in_its_own_order() {
    let source = moody(103, &[], &[]);
    let loader = Loader::new(source, config(10, 2));
    assert_eq!(loader.batches(), 11);
    let order = |epoch| {
        collect(loader.epoch(epoch, 0))
            .into_iter()
            .flat_map(|batch| batch.labels)
            .collect::<Vec<_>>()
    };
    assert_ne!(order(0), order(1));
    let mut sorted = order(0);
    sorted.sort_unstable();
    assert_eq!(sorted, (0..103).collect::<Vec<i64>>());
}

#[test]
fn skipping_resumes_an_epoch() {
    let digits = Arc::new(Digits::load(Split::Val, 8).unwrap());
    let loader = Loader::new(digits, config(50, 2));
    let whole = collect(loader.epoch(1, 0));
    for batches in [0, 3, 7] {
        assert_eq!(collect(loader.epoch(1, batches * 50)), whole[batches..]);
    }
    assert!(collect(loader.epoch(1, 360)).is_empty());
    assert!(collect(loader.epoch(1, 9999)).is_empty());
}

#[test]
fn batches_in_flight_are_bounded() {
    for workers in [0, 1, 3] {
        let source = moody(400, &[], &[]);
        let loader = plain(&source, 4, workers);
        let mut batches = loader.epoch(0, 0);
        for handed_over in 1..=5 {
            batches.next().unwrap().unwrap();
            // Long enough for the workers to run ahead, if they could.
            std::thread::sleep(Duration::from_millis(20));
            let read = source.visits.load(Ordering::SeqCst) / 4;
            assert!(
                read <= handed_over + workers,
                "{read} batches read, {handed_over} handed over"
            );
        }
    }
}

#[test]
fn dropping_early_stops_the_workers() {
    let source = moody(1_000_000, &[], &[]);
    let loader = plain(&source, 8, 3);
    let mut batches = loader.epoch(0, 0);
    batches.next().unwrap().unwrap();
    drop(batches);
    drop(loader.epoch(0, 0));
    drop(loader);
    // No thread holds the source any more.
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn a_panic_becomes_an_error_and_ends_the_epoch() {
    for workers in [0, 1, 3] {
        let mut batches = plain(&moody(20, &[], &[9]), 4, workers).epoch(0, 0);
        assert_eq!(batches.next().unwrap().unwrap().labels, [0, 1, 2, 3]);
        assert_eq!(batches.next().unwrap().unwrap().labels, [4, 5, 6, 7]);
        let error = batches.next().unwrap().unwrap_err();
        assert!(
            matches!(&error, DataError::Panicked { index: 9, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("cursed"));
        assert!(batches.next().is_none());
    }
}

#[test]
fn unreadable_images_are_left_out_and_named_once() {
    for workers in [0, 2] {
        // Batches of 3: [0 1 2] without 1; [3 4 5] is gone; [6 7 8]; [9] is gone.
        let loader = plain(&moody(10, &[1, 3, 4, 5, 9], &[]), 3, workers);
        for _ in 0..2 {
            let batches = collect(loader.epoch(0, 0));
            let (labels, visited): (Vec<_>, Vec<_>) =
                batches.into_iter().map(|b| (b.labels, b.visited)).unzip();
            assert_eq!(labels, [vec![0, 2], vec![6, 7, 8]]);
            assert_eq!(visited, [3, 6]);
            assert_eq!(
                loader.unreadable(),
                ["1.jpg", "3.jpg", "4.jpg", "5.jpg", "9.jpg"]
            );
        }
    }
}

#[test]
fn strict_ends_with_the_first_unreadable_image() {
    for workers in [0, 2] {
        let strict = LoaderConfig {
            shuffle: false,
            strict: true,
            ..config(3, workers)
        };
        let loader = Loader::new(moody(10, &[4], &[]), strict);
        let mut batches = loader.epoch(0, 0);
        assert!(batches.next().unwrap().is_ok());
        assert!(
            matches!(batches.next().unwrap(), Err(DataError::Unreadable { path, .. }) if path == Path::new("4.jpg"))
        );
        assert!(batches.next().is_none());
    }
}

#[test]
fn an_epoch_of_nothing_is_an_error() {
    for (source, says) in [
        (moody(3, &[0, 1, 2], &[]), "0.jpg"),
        (moody(0, &[], &[]), "has none"),
    ] {
        let mut batches = plain(&source, 2, 1).epoch(0, 0);
        let error = batches.next().unwrap().unwrap_err();
        assert!(
            matches!(error, DataError::NothingReadable { .. }) && error.to_string().contains(says)
        );
        assert!(batches.next().is_none());
    }
    // The rest of an epoch may well be unreadable.
    assert!(
        plain(&moody(3, &[2], &[]), 2, 1)
            .epoch(0, 2)
            .next()
            .is_none()
    );
}

#[test]
fn a_batch_size_of_0_is_an_error() {
    let loader = plain(&moody(3, &[], &[]), 0, 2);
    assert_eq!(loader.batches(), 3);
    let mut batches = loader.epoch(0, 0);
    assert!(matches!(batches.next(), Some(Err(DataError::BatchSize))));
    assert!(batches.next().is_none());
}
