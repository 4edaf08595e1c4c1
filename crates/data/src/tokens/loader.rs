#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::host::Row;
use super::permutation::Permutation;
use super::{Corpus, HostTokens, TextError};
use crate::random::mix;
use crate::{DataError, Split};

/// Batches of independent windows of a text.
///
/// A training epoch visits windows that do not overlap, from a starting point and in an order that are drawn from seed
/// and epoch; what does not fill a window is left out of that epoch. Validation goes through the text in order, with
/// every token but the first as a target once; the last window is padded. The order takes no memory, however long the
/// text is.
pub struct TextLoader {
    corpus: Arc<Corpus>,
    split: Split,
    batch: usize,
    context: usize,
    seed: u64,
}

impl TextLoader {
    /// Batches of `batch` windows of `context` tokens.
    ///
    /// # Errors
    ///
    /// [`TextError::Zero`], and [`TextError::TooShort`] for a part without one window (training) or one target
    /// (validation).
    pub fn new(
        corpus: Arc<Corpus>,
        split: Split,
        batch: usize,
        context: usize,
        seed: u64,
    ) -> Result<TextLoader, TextError> {
        for (setting, size) in [("batch", batch), ("context", context)] {
            if size == 0 {
                return Err(TextError::Zero { setting });
            }
        }
        let needed = match split {
            Split::Train => context as u64 + 1,
            Split::Val => 2,
        };
        corpus.require(split, needed)?;
        Ok(TextLoader {
            corpus,
            split,
            batch,
            context,
            seed,
        })
    }

    /// The text.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Windows of an epoch, the same in each.
    pub fn windows(&self) -> u64 {
        let (tokens, context) = (self.corpus.len(self.split), self.context as u64);
        match self.split {
            // One less than fit, so that there is room for any starting point.
            Split::Train => (tokens / context).saturating_sub(1).max(1),
            Split::Val => (tokens - 1).div_ceil(context),
        }
    }

    /// Batches of an epoch, the short last one included.
    pub fn batches(&self) -> usize {
        let batches = self.windows().div_ceil(self.batch as u64);
        usize::try_from(batches).unwrap_or(usize::MAX)
    }

    /// The batches of an epoch after the first `skip` windows of its order.
    pub fn epoch(
        &self,
        epoch: usize,
        skip: usize,
    ) -> impl Iterator<Item = Result<HostTokens, DataError>> {
        let windows = self.windows();
        let seed = mix(self.seed, epoch as u64);
        let order = (self.split == Split::Train).then(|| Permutation::new(windows, seed));
        let offset = match self.split {
            Split::Train => {
                let room = self.corpus.len(self.split) - windows * self.context as u64;
                mix(seed, 1) % room.min(self.context as u64)
            }
            Split::Val => 0,
        };
        let mut next = skip as u64;
        std::iter::from_fn(move || {
            if next >= windows {
                return None;
            }
            let end = (next + self.batch as u64).min(windows);
            let rows = (next..end).map(|index| {
                let window = order.map_or(index, |order| order.at(index));
                self.row(offset + window * self.context as u64)
            });
            let rows: Result<Vec<Row>, TextError> = rows.collect();
            let visited = (end - next) as usize;
            next = end;
            Some(
                rows.map(|rows| HostTokens::new(rows, self.context, visited))
                    .map_err(DataError::from),
            )
        })
    }

    fn row(&self, start: u64) -> Result<Row, TextError> {
        let left = self.corpus.len(self.split) - start;
        let len = (self.context as u64 + 1).min(left) as usize;
        Ok(Row {
            tokens: self.corpus.read(self.split, start, len)?,
            reset: true,
        })
    }
}
