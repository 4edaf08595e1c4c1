#[cfg(test)]
mod tests;

use std::io::{BufRead, ErrorKind};

use super::{InvalidUtf8, TextError};

/// A text in pieces of at most `limit` bytes, whatever the length of its lines.
///
/// A piece ends, in this order of preference, after a line end that something else than white space follows (which no
/// tokenizer in use reaches across), after any line end, before white space, and between two characters.
pub(super) struct Chunks<R> {
    reader: R,
    limit: usize,
    invalid: InvalidUtf8,
    /// The piece that was given out last, and what was read beyond it.
    text: String,
    given: usize,
    /// The first bytes of a character whose rest is still to be read.
    begun: Vec<u8>,
    ended: bool,
    /// Bytes of the pieces before the one that was given out last.
    offset: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Sequences that were not UTF-8.
    pub replaced: u64,
}

impl<R: BufRead> Chunks<R> {
    /// `limit` is at least the 4 bytes of the longest character.
    pub fn new(reader: R, limit: usize, invalid: InvalidUtf8) -> Chunks<R> {
        Chunks {
            reader,
            limit: limit.max(4),
            invalid,
            text: String::new(),
            given: 0,
            begun: Vec::new(),
            ended: false,
            offset: 0,
            bytes: 0,
            replaced: 0,
        }
    }

    /// The next piece, never empty, and how many bytes of text were before it; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`TextError::Text`] and, unless such bytes are replaced, [`TextError::InvalidUtf8`].
    pub fn next(&mut self) -> Result<Option<(u64, &str)>, TextError> {
        self.text.drain(..self.given);
        self.offset += self.given as u64;
        self.given = 0;
        while !self.ended && self.text.len() < self.limit {
            self.fill()?;
        }
        self.given = match self.ended && self.text.len() <= self.limit {
            true => self.text.len(),
            false => cut(&self.text, self.limit),
        };
        let piece = &self.text[..self.given];
        Ok((!piece.is_empty()).then_some((self.offset, piece)))
    }

    /// Takes what the reader has, at most up to the limit.
    fn fill(&mut self) -> Result<(), TextError> {
        let buffer = match self.reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            Err(cause) => {
                let offset = self.bytes;
                return Err(TextError::Text { offset, cause });
            }
        };
        let mut raw = std::mem::take(&mut self.begun);
        let taken = buffer.len().min(self.limit - self.text.len());
        raw.extend_from_slice(&buffer[..taken]);
        self.reader.consume(taken);
        self.bytes += taken as u64;
        self.ended = taken == 0;

        let mut at = self.bytes - raw.len() as u64;
        for chunk in raw.utf8_chunks() {
            self.text.push_str(chunk.valid());
            at += chunk.valid().len() as u64;
            let bad = chunk.invalid();
            let last = at + bad.len() as u64 == self.bytes;
            if last && !self.ended && is_begun(bad) {
                self.begun = bad.to_vec();
            } else if !bad.is_empty() {
                self.replace(at)?;
            }
            at += bad.len() as u64;
        }
        Ok(())
    }

    fn replace(&mut self, offset: u64) -> Result<(), TextError> {
        if self.invalid == InvalidUtf8::Refuse {
            return Err(TextError::InvalidUtf8 { offset });
        }
        self.text.push(char::REPLACEMENT_CHARACTER);
        self.replaced += 1;
        Ok(())
    }
}

/// Whether more bytes could make a character of these, which are not one.
fn is_begun(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Where to end a piece of `text`, which is longer than `limit` or goes on unseen.
fn cut(text: &str, limit: usize) -> usize {
    let bytes = text.as_bytes();
    let end = text.floor_char_boundary(limit);
    let line = |at: usize| bytes[at - 1] == b'\n';
    let space = |at: usize| bytes.get(at).is_none_or(u8::is_ascii_whitespace);
    let last = |fits: &dyn Fn(usize) -> bool| (1..=end).rev().find(|&at| fits(at));
    last(&|at| line(at) && !space(at))
        .or_else(|| last(&line))
        .or_else(|| last(&|at| at < bytes.len() && space(at) && !space(at - 1)))
        .unwrap_or(end)
}
