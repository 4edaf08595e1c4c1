#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::host::Row;
use super::{Corpus, HostTokens, TextError};
use crate::{DataError, Split};

/// A text in segments of fixed length and in order, for a model that carries its state from one to the next.
///
/// The text is cut into `lanes` parts that are read side by side; batch `k` holds segment `k` of each. Every token but
/// the first of the text is a target once. With a separator token a segment ends behind one, padded, and the next
/// segment of that lane begins anew ([`HostTokens::reset`]), so that no document sees another.
pub struct SegmentedLoader {
    corpus: Arc<Corpus>,
    split: Split,
    lanes: usize,
    segment: usize,
    separator: Option<i64>,
}

impl SegmentedLoader {
    /// `lanes` sequences side by side, `segment` tokens of each at a time.
    ///
    /// # Errors
    ///
    /// [`TextError::Zero`], and [`TextError::TooShort`] for fewer tokens than lanes and one.
    pub fn new(
        corpus: Arc<Corpus>,
        split: Split,
        lanes: usize,
        segment: usize,
        separator: Option<u32>,
    ) -> Result<SegmentedLoader, TextError> {
        for (setting, size) in [("batch", lanes), ("context", segment)] {
            if size == 0 {
                return Err(TextError::Zero { setting });
            }
        }
        corpus.require(split, lanes as u64 + 1)?;
        Ok(SegmentedLoader {
            corpus,
            split,
            lanes,
            segment,
            separator: separator.map(i64::from),
        })
    }

    /// Segments of the longest lane; with a separator there may be more.
    pub fn batches(&self) -> usize {
        let targets = self.corpus.len(self.split) - 1;
        let longest = targets.div_ceil(self.lanes as u64);
        usize::try_from(longest.div_ceil(self.segment as u64)).unwrap_or(usize::MAX)
    }

    /// The batches after the first `skip` sequences, counted over all lanes. With a separator the skipped tokens are
    /// read too, to find where documents end.
    pub fn segments(&self, skip: usize) -> impl Iterator<Item = Result<HostTokens, DataError>> {
        let targets = self.corpus.len(self.split) - 1;
        let border = |lane: usize| {
            // In 128 bits: tokens x lanes may be beyond 64.
            (u128::from(targets) * lane as u128 / self.lanes as u128) as u64
        };
        let mut lanes: Vec<Lane> = (0..self.lanes)
            .map(|lane| Lane {
                next: border(lane),
                end: border(lane + 1),
                reset: true,
            })
            .collect();
        let mut skip = skip / self.lanes;
        if self.separator.is_none() {
            for lane in &mut lanes {
                let ahead = (skip as u64).saturating_mul(self.segment as u64);
                lane.next = lane.next.saturating_add(ahead).min(lane.end);
                lane.reset = skip == 0;
            }
            skip = 0;
        }
        let mut step = move || {
            if lanes.iter().all(|lane| lane.next == lane.end) {
                return None;
            }
            let rows: Result<Vec<Row>, TextError> =
                lanes.iter_mut().map(|lane| self.row(lane)).collect();
            Some(rows.map(|rows| HostTokens::new(rows, self.segment, self.lanes)))
        };
        std::iter::from_fn(move || {
            while skip > 0 {
                skip -= 1;
                if let Err(error) = step()? {
                    return Some(Err(DataError::from(error)));
                }
            }
            Some(step()?.map_err(DataError::from))
        })
    }

    fn row(&self, lane: &mut Lane) -> Result<Row, TextError> {
        let targets = (self.segment as u64).min(lane.end - lane.next) as usize;
        let mut tokens = match targets {
            0 => Vec::new(),
            _ => self.corpus.read(self.split, lane.next, targets + 1)?,
        };
        let reset = std::mem::take(&mut lane.reset);
        if let Some(separator) = self.separator {
            // The separator is the document's last target; what follows begins with it as its first input.
            if let Some(end) = tokens.iter().skip(1).position(|token| *token == separator) {
                tokens.truncate(end + 2);
                lane.reset = true;
            }
        }
        lane.next += tokens.len().saturating_sub(1) as u64;
        Ok(Row { tokens, reset })
    }
}

/// A part of the text, and how far it is read.
struct Lane {
    /// Position of the next input.
    next: u64,
    /// Behind the last input.
    end: u64,
    reset: bool,
}
