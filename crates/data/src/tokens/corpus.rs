#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

use super::{TextError, TokenFile, Tokenizer};
use crate::Split;

/// Part of a corpus that is validation, by default.
pub const VAL_FRACTION: f64 = 0.05;

/// Tokens in a training and a validation part: the last tokens are validation.
#[derive(Debug)]
pub struct Corpus {
    tokens: Tokens,
    name: String,
    train: u64,
}

#[derive(Debug)]
enum Tokens {
    Bytes(Vec<u8>),
    File(TokenFile),
}

impl Corpus {
    /// The Jargon File 4.4.7, 1.68 MB of English in the public domain, which ships with the crate; a token is a byte.
    ///
    /// # Errors
    ///
    /// [`TextError::Fraction`] for a `val_fraction` outside 0 to below 1.
    pub fn jargon(val_fraction: f64) -> Result<Corpus, TextError> {
        let mut text = Vec::new();
        GzDecoder::new(include_bytes!("../../assets/jargon.txt.gz").as_slice())
            .read_to_end(&mut text)
            .map_err(|cause| TextError::DamagedJargon { cause })?;
        Corpus::bytes("jargon file", text, val_fraction)
    }

    /// Bytes as tokens.
    ///
    /// # Errors
    ///
    /// [`TextError::Fraction`].
    pub fn bytes(name: &str, bytes: Vec<u8>, val_fraction: f64) -> Result<Corpus, TextError> {
        let train = split(bytes.len() as u64, val_fraction)?;
        Ok(Corpus {
            tokens: Tokens::Bytes(bytes),
            name: name.into(),
            train,
        })
    }

    /// A token file, which is mapped and not read.
    ///
    /// # Errors
    ///
    /// Those of [`TokenFile::open`], and [`TextError::Fraction`].
    pub fn open(path: impl AsRef<Path>, val_fraction: f64) -> Result<Corpus, TextError> {
        let file = TokenFile::open(path)?;
        Ok(Corpus {
            train: split(file.len(), val_fraction)?,
            name: file.path().display().to_string(),
            tokens: Tokens::File(file),
        })
    }

    /// For people: `jargon file (1681817 tokens)`.
    pub fn name(&self) -> String {
        format!("{} ({} tokens)", self.name, self.all())
    }

    /// Tokens of a part.
    pub fn len(&self, split: Split) -> u64 {
        match split {
            Split::Train => self.train,
            Split::Val => self.all() - self.train,
        }
    }

    /// Every token is below it.
    pub fn vocab(&self) -> u64 {
        match &self.tokens {
            Tokens::Bytes(_) => Tokenizer::Bytes.vocab(),
            Tokens::File(file) => file.vocab(),
        }
    }

    /// Bytes of text that a token stands for, on average.
    pub fn bytes_per_token(&self) -> f64 {
        match &self.tokens {
            Tokens::Bytes(_) => 1.0,
            Tokens::File(file) => file.source_bytes() as f64 / file.len().max(1) as f64,
        }
    }

    /// `len` tokens from position `start` of a part on.
    ///
    /// # Errors
    ///
    /// [`TextError::Range`] if they reach beyond the part, and those of [`TokenFile::read`].
    pub fn read(&self, split: Split, start: u64, len: usize) -> Result<Vec<i64>, TextError> {
        let end = start.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len(split)) {
            return Err(TextError::Range {
                name: self.name.clone(),
                start,
                len,
                tokens: self.len(split),
            });
        }
        let start = match split {
            Split::Train => start,
            Split::Val => self.train + start,
        };
        match &self.tokens {
            Tokens::Bytes(bytes) => {
                let bytes = &bytes[start as usize..][..len];
                Ok(bytes.iter().copied().map(i64::from).collect())
            }
            Tokens::File(file) => file.read(start, len),
        }
    }

    /// Refuses a part with fewer tokens than `needed`.
    pub(super) fn require(&self, split: Split, needed: u64) -> Result<(), TextError> {
        if self.len(split) >= needed {
            return Ok(());
        }
        Err(TextError::TooShort {
            name: self.name.clone(),
            split: match split {
                Split::Train => "training",
                Split::Val => "validation",
            },
            needed,
            present: self.len(split),
        })
    }

    fn all(&self) -> u64 {
        match &self.tokens {
            Tokens::Bytes(bytes) => bytes.len() as u64,
            Tokens::File(file) => file.len(),
        }
    }
}

/// Tokens of the training part.
fn split(tokens: u64, val_fraction: f64) -> Result<u64, TextError> {
    if !(0.0..1.0).contains(&val_fraction) {
        return Err(TextError::Fraction {
            fraction: val_fraction,
        });
    }
    Ok(tokens - (tokens as f64 * val_fraction).round() as u64)
}
