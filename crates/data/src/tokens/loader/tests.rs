use std::sync::Arc;

use super::TextLoader;
use crate::Split;
use crate::tokens::{Corpus, HostTokens, IGNORE, TextError};

fn loader(tokens: usize, split: Split, batch: usize, context: usize) -> TextLoader {
    let bytes = (0..tokens).map(|index| index as u8).collect();
    let fraction = if split == Split::Val { 0.999_999 } else { 0.0 };
    let corpus = Corpus::bytes("text", bytes, fraction).unwrap();
    TextLoader::new(Arc::new(corpus), split, batch, context, 3).unwrap()
}

fn epoch(loader: &TextLoader, epoch: usize, skip: usize) -> Vec<HostTokens> {
    loader.epoch(epoch, skip).map(Result::unwrap).collect()
}

fn targets(batches: &[HostTokens]) -> Vec<i64> {
    let all = batches.iter().flat_map(|batch| &batch.targets);
    let mut all: Vec<i64> = all.copied().filter(|target| *target != IGNORE).collect();
    all.sort_unstable();
    all
}

#[test]
fn validation_asks_for_every_token_but_the_first_once() {
    for tokens in 2..60 {
        for (batch, context) in [(1, 1), (2, 4), (3, 7), (9, 59)] {
            let loader = loader(tokens, Split::Val, batch, context);
            let batches = epoch(&loader, 0, 0);
            assert!(
                targets(&batches).into_iter().eq(1..tokens as i64),
                "{tokens} {context}"
            );
            assert_eq!(batches.len(), loader.batches());
            assert_eq!(batches.iter().map(|b| b.counted).sum::<usize>(), tokens - 1);
            assert_eq!(batches, epoch(&loader, 5, 0), "the same in every epoch");
        }
    }
}

#[test]
fn training_windows_do_not_overlap_and_follow_their_inputs() {
    for tokens in [9, 16, 17, 100, 250] {
        let loader = loader(tokens, Split::Train, 3, 8);
        let mut starts = Vec::new();
        for number in 0..20 {
            let batches = epoch(&loader, number, 0);
            let mut seen = targets(&batches);
            assert_eq!(seen.len() as u64, 8 * loader.windows(), "no padding");
            seen.dedup();
            assert_eq!(seen.len() as u64, 8 * loader.windows(), "each target once");
            let rows = batches
                .iter()
                .flat_map(|b| b.inputs.chunks(8).zip(b.targets.chunks(8)));
            assert!(
                rows.clone()
                    .all(|(inputs, targets)| inputs[1..] == targets[..7])
            );
            starts.push(rows.map(|(inputs, _)| inputs[0]).collect::<Vec<_>>());
        }
        assert!(tokens < 17 || starts.iter().any(|start| *start != starts[0]));
        assert_eq!(epoch(&loader, 3, 0), epoch(&loader, 3, 0));
    }
}

#[test]
fn a_resumed_epoch_is_the_tail_of_a_whole_one() {
    let loader = loader(250, Split::Train, 4, 8);
    let whole = epoch(&loader, 2, 0);
    let behind = whole[..3].iter().map(|batch| batch.visited).sum();
    assert_eq!(epoch(&loader, 2, behind), whole[3..]);
}

#[test]
fn what_makes_no_window_is_refused() {
    let corpus = Arc::new(Corpus::bytes("text", vec![0; 8], 0.0).unwrap());
    let error = |split, batch, context| {
        TextLoader::new(corpus.clone(), split, batch, context, 0)
            .err()
            .unwrap()
    };
    let short = error(Split::Train, 1, 8);
    assert!(
        matches!(
            short,
            TextError::TooShort {
                needed: 9,
                present: 8,
                ..
            }
        ),
        "{short}"
    );
    assert!(matches!(
        error(Split::Val, 1, 4),
        TextError::TooShort { .. }
    ));
    assert!(matches!(
        error(Split::Train, 0, 4),
        TextError::Zero { setting: "batch" }
    ));
}
