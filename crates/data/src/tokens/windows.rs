#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::permutation::Permutation;
use super::{Corpus, TextError};
use crate::Split;
use crate::random::mix;

/// A part of a corpus cut into windows of `context + 1` tokens that share one token with the next: every window gives
/// `context` inputs and as many targets.
///
/// To evaluate, the windows come in order, the first begins at the first token, and the last is padded: every token but
/// the first is a target exactly once. To train, the order is drawn from the seed and the epoch, and so is the place of
/// the first window, so that epochs see different cuts: fewer than `2 * context` tokens, some at either end, are no
/// target in an epoch, and every other token is one exactly once. The number of windows is the same in every epoch.
/// The order takes no memory, however long the text.
#[derive(Clone, Debug)]
pub struct Windows {
    corpus: Arc<Corpus>,
    split: Split,
    context: usize,
    /// Windows in an epoch.
    len: u64,
    /// Tokens of the part.
    tokens: u64,
    /// Seed of a training order.
    seed: Option<u64>,
}

/// The place of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Position of its first token in its part of the corpus.
    pub start: u64,
    /// Its tokens: `context + 1`, or fewer in the last one of an evaluation.
    pub tokens: usize,
}

impl Windows {
    /// Windows in an order and with a first cut drawn from the seed and the epoch.
    ///
    /// # Errors
    ///
    /// As [`evaluation`](Self::evaluation).
    pub fn training(
        corpus: Arc<Corpus>,
        split: Split,
        context: usize,
        seed: u64,
    ) -> Result<Windows, TextError> {
        let mut windows = Windows::evaluation(corpus, split, context)?;
        // One window less than would fit, if there are two, leaves room for at least `context` different cuts.
        windows.len = (windows.tokens / context as u64).saturating_sub(1).max(1);
        windows.seed = Some(seed);
        Ok(windows)
    }

    /// Windows in the order of the text, the same in every epoch.
    ///
    /// # Errors
    ///
    /// [`TextError::Zero`] for a context of 0; [`TextError::TooShort`] for a part that has no whole window.
    pub fn evaluation(
        corpus: Arc<Corpus>,
        split: Split,
        context: usize,
    ) -> Result<Windows, TextError> {
        if context == 0 {
            return Err(TextError::Zero { setting: "context" });
        }
        let tokens = corpus.require(split, (context as u64).saturating_add(1))?;
        Ok(Windows {
            len: (tokens - 1).div_ceil(context as u64),
            corpus,
            split,
            context,
            tokens,
            seed: None,
        })
    }

    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Inputs of a window.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Windows in every epoch, at least 1.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The places of all windows of an epoch but the first `skip`, in the order of their visit.
    pub fn epoch(&self, epoch: usize, skip: u64) -> impl Iterator<Item = Window> + Send + use<> {
        let (len, tokens, context) = (self.len, self.tokens, self.context);
        let drawn = self.seed.map(|seed| {
            let seed = mix(seed, epoch as u64);
            // No overflow: `len` windows fit into the tokens.
            let cuts = tokens - len * context as u64;
            (mix(seed, 1) % cuts, Permutation::new(len, mix(seed, 0)))
        });
        (skip.min(len)..len).map(move |index| {
            let (first, number) = match drawn {
                Some((first, order)) => (first, order.at(index)),
                None => (0, index),
            };
            let start = first + number * context as u64;
            Window {
                start,
                // Exact: at most `context + 1`, which is a usize because a corpus has as many tokens.
                tokens: (tokens - start).min(context as u64 + 1) as usize,
            }
        })
    }

    /// The tokens of a window.
    ///
    /// # Errors
    ///
    /// Those of [`Corpus::read`].
    pub fn read(&self, window: Window) -> Result<Vec<i64>, TextError> {
        self.corpus.read(self.split, window.start, window.tokens)
    }
}
