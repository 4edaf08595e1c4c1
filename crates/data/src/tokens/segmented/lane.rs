use crate::Split;
use crate::tokens::{Corpus, TextError};

/// A stretch of a corpus: its inputs are the tokens at `start..end`, and its targets those at `start + 1..=end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    start: u64,
    /// The next input.
    at: u64,
    end: u64,
}

/// What a lane gives at once.
pub(super) struct Segment {
    /// The inputs and, after them, the last target; none once the lane has ended.
    pub tokens: Vec<i64>,
    /// Whether the lane or a document begins with it.
    pub reset: bool,
}

impl Lane {
    pub fn new(start: u64, end: u64) -> Lane {
        Lane {
            start,
            at: start,
            end,
        }
    }

    /// Inputs that are left.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// Leaves out `inputs`, or all that are left.
    pub fn pass(&mut self, inputs: u64) {
        self.at += inputs.min(self.left());
    }

    /// The next inputs, at most `most`, as far as no document begins within them.
    pub fn take(
        &mut self,
        corpus: &Corpus,
        split: Split,
        most: usize,
        separator: Option<u32>,
    ) -> Result<Segment, TextError> {
        let inputs = self.left().min(most as u64) as usize;
        if inputs == 0 {
            return Ok(Segment {
                tokens: Vec::new(),
                reset: false,
            });
        }
        let mut tokens = corpus.read(split, self.at, inputs + 1)?;
        let separates = |&token: &i64| separator.map(i64::from) == Some(token);
        let reset = self.at == self.start || separates(&tokens[0]);
        if let Some(next) = tokens[1..].iter().position(separates) {
            tokens.truncate(next + 2);
        }
        self.pass(tokens.len() as u64 - 1);
        Ok(Segment { tokens, reset })
    }
}
