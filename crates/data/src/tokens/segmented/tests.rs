use std::sync::Arc;

use super::SegmentedLoader;
use crate::Split;
use crate::tokens::{Corpus, HostTokens, IGNORE};

fn loader(bytes: Vec<u8>, lanes: usize, segment: usize, separator: Option<u32>) -> SegmentedLoader {
    let corpus = Corpus::bytes("text", bytes, 0.0).unwrap();
    SegmentedLoader::new(Arc::new(corpus), Split::Train, lanes, segment, separator).unwrap()
}

fn all(loader: &SegmentedLoader, skip: usize) -> Vec<HostTokens> {
    loader.segments(skip).map(Result::unwrap).collect()
}

#[test]
fn every_token_but_the_first_is_a_target_once_and_in_order() {
    for tokens in [5usize, 17, 40, 200] {
        for (lanes, segment) in [(1, 3), (2, 8), (4, 5)] {
            let loader = loader((0..tokens as u8).collect(), lanes, segment, None);
            let batches = all(&loader, 0);
            assert_eq!(batches.len(), loader.batches());
            let mut seen = Vec::new();
            for lane in 0..lanes {
                let rows = batches
                    .iter()
                    .flat_map(|b| &b.targets[lane * segment..][..segment]);
                seen.extend(rows.copied().filter(|target| *target != IGNORE));
            }
            assert!(
                seen.into_iter().eq(1..tokens as i64),
                "{tokens} {lanes} {segment}"
            );
            assert!(batches[0].reset.iter().all(|reset| *reset));
            assert!(batches[1..].iter().all(|b| !b.reset.contains(&true)));
        }
    }
}

#[test]
fn resuming_goes_on_where_it_was() {
    for separator in [None, Some(7)] {
        let text = (0..200u32).map(|i| (i * i % 23) as u8).collect();
        let loader = loader(text, 3, 6, separator);
        let whole = all(&loader, 0);
        for step in 1..whole.len() {
            assert_eq!(
                all(&loader, step * 3),
                whole[step..],
                "{separator:?} {step}"
            );
        }
    }
}

#[test]
fn documents_do_not_share_a_segment() {
    let text = vec![1, 2, 3, 0, 4, 5, 0, 6, 7, 8, 9];
    let batches = all(&loader(text, 1, 4, Some(0)), 0);
    let targets: Vec<_> = batches.iter().map(|batch| batch.targets.clone()).collect();
    assert_eq!(
        targets,
        [[2, 3, 0, IGNORE], [4, 5, 0, IGNORE], [6, 7, 8, 9]]
    );
    assert!(batches.iter().all(|batch| batch.reset == [true]));
    assert_eq!(batches[1].inputs, [0, 4, 5, 0]);
}
