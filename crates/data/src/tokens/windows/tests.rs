use super::*;

fn corpus(tokens: usize) -> Arc<Corpus> {
    let text = (0..tokens).map(|at| (at % 251) as u8).collect();
    Arc::new(
        Corpus::from_bytes("test", text)
            .with_validation(0.0)
            .unwrap(),
    )
}

fn training(tokens: usize, context: usize, seed: u64) -> Windows {
    Windows::training(corpus(tokens), Split::Train, context, seed).unwrap()
}

fn evaluation(tokens: usize, context: usize) -> Windows {
    Windows::evaluation(corpus(tokens), Split::Train, context).unwrap()
}

/// How often each position is a target.
fn targets(windows: &Windows, epoch: usize) -> Vec<usize> {
    let mut counts = vec![0; windows.tokens as usize];
    for window in windows.epoch(epoch, 0) {
        let start = window.start as usize;
        counts[start + 1..start + window.tokens]
            .iter_mut()
            .for_each(|count| *count += 1);
    }
    counts
}

#[test]
fn an_evaluation_scores_every_token_but_the_first_exactly_once() {
    for context in 1..12 {
        for tokens in context + 1..60 {
            let windows = evaluation(tokens, context);
            let counts = targets(&windows, 3);
            assert_eq!(counts[0], 0);
            assert!(
                counts[1..].iter().all(|&count| count == 1),
                "{tokens} {context}"
            );
            assert_eq!(windows.epoch(3, 0).count() as u64, windows.len());
            assert!(windows.epoch(0, 0).is_sorted_by_key(|window| window.start));
        }
    }
}

#[test]
fn a_training_epoch_scores_a_run_of_tokens_exactly_once() {
    for context in 1..12 {
        for tokens in context + 1..60 {
            let windows = training(tokens, context, 9);
            for epoch in 0..4 {
                let counts = targets(&windows, epoch);
                let scored: usize = counts.iter().sum();
                assert!(counts.iter().all(|&count| count <= 1));
                assert_eq!(scored as u64, windows.len() * context as u64);
                assert!(tokens - scored < 2 * context + 1, "{tokens} {context}");
                let first = counts.iter().position(|&count| count == 1).unwrap();
                assert!(
                    counts[first..first + scored]
                        .iter()
                        .all(|&count| count == 1)
                );
                assert!(
                    windows
                        .epoch(epoch, 0)
                        .all(|window| window.tokens == context + 1)
                );
            }
        }
    }
}

#[test]
fn over_the_epochs_every_token_is_a_target_and_every_cut_occurs() {
    for (tokens, context) in [(9, 8), (15, 8), (16, 8), (17, 8), (23, 8), (100, 8), (5, 1)] {
        let windows = training(tokens, context, 1);
        let mut counts = vec![0; tokens];
        let mut firsts = std::collections::HashSet::new();
        for epoch in 0..400 {
            let targets = targets(&windows, epoch);
            firsts.insert(targets.iter().position(|&count| count == 1));
            counts
                .iter_mut()
                .zip(targets)
                .for_each(|(sum, count)| *sum += count);
        }
        assert!(
            counts[1..].iter().all(|&count| count > 0),
            "{tokens} {context} {counts:?}"
        );
        assert_eq!(firsts.len(), tokens - windows.len() as usize * context);
    }
}

#[test]
fn the_order_is_that_of_the_seed_and_the_epoch() {
    let order = |seed, epoch| training(5000, 16, seed).epoch(epoch, 0).collect::<Vec<_>>();
    assert_eq!(order(1, 2), order(1, 2));
    assert_ne!(order(1, 2), order(1, 3));
    assert_ne!(order(1, 2), order(2, 2));
    assert!(!order(1, 2).is_sorted_by_key(|window| window.start));
}

#[test]
fn skipping_leaves_the_tail() {
    for windows in [training(700, 16, 4), evaluation(700, 16)] {
        let whole: Vec<Window> = windows.epoch(5, 0).collect();
        for skip in 0..=whole.len() + 2 {
            let tail: Vec<Window> = windows.epoch(5, skip as u64).collect();
            assert_eq!(tail, whole[skip.min(whole.len())..]);
        }
    }
}

#[test]
fn a_window_is_what_the_corpus_has_there() {
    let windows = evaluation(10, 4);
    let read = |window| windows.read(window).unwrap();
    let all: Vec<Vec<i64>> = windows.epoch(0, 0).map(read).collect();
    assert_eq!(all, [vec![0, 1, 2, 3, 4], vec![4, 5, 6, 7, 8], vec![8, 9]]);
}

#[test]
fn too_short_a_corpus_and_a_context_of_0_are_errors() {
    for context in [8, 100, usize::MAX] {
        let error = Windows::training(corpus(8), Split::Train, context, 0).unwrap_err();
        let needed = (context as u64).saturating_add(1);
        assert!(matches!(error, TextError::TooShort { needed: n, present: 8, .. } if n == needed));
    }
    let error = Windows::evaluation(corpus(8), Split::Val, 2).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("validation part of test is too short: 3 tokens are needed and 0 present")
    );
    assert!(matches!(
        Windows::evaluation(corpus(8), Split::Train, 0),
        Err(TextError::Zero { .. })
    ));
}
