#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapOptions};

use super::header::{HEADER, Header};
use super::{TextError, TokenizerId};

/// A memory-mapped file of tokens, `u16` or `u32`, little-endian, after a header of 64 bytes.
///
/// Opening reads the header only; tokens are read from the disk when they are asked for, and the memory that holds them
/// then is the operating system's file cache. While a file is mapped, nothing may shorten it: reading beyond its new
/// end would kill the process. [`TokenWriter`](super::TokenWriter) puts a new file beside the old one instead.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    header: Header,
    map: Mmap,
}

impl TokenFile {
    /// Maps a file after checking its header and its length.
    ///
    /// # Errors
    ///
    /// [`TextError::Read`] if it cannot be read or mapped; [`TextError::NotTokens`], [`TextError::Version`],
    /// [`TextError::Header`] or [`TextError::Length`] if it is not a whole token file.
    pub fn open(path: impl AsRef<Path>) -> Result<TokenFile, TextError> {
        let path = path.as_ref();
        let failed = |cause| TextError::Read {
            path: path.to_owned(),
            cause,
        };
        let mut file = File::open(path).map_err(failed)?;
        let mut start = Vec::with_capacity(HEADER);
        let mut head = file.by_ref().take(HEADER as u64);
        head.read_to_end(&mut start).map_err(failed)?;
        let mut bytes = [0; HEADER];
        bytes[..start.len()].copy_from_slice(&start);
        let file_bytes = file.metadata().map_err(failed)?.len();
        let header = Header::parse(&bytes, file_bytes, path)?;
        let Ok(len) = usize::try_from(file_bytes) else {
            return Err(TextError::TooLarge {
                setting: "the token file",
            });
        };
        // SAFETY: the map is only read; that nothing may shorten the file meanwhile is the type's documented condition.
        let map = unsafe { MmapOptions::new().len(len).map(&file) }.map_err(failed)?;
        Ok(TokenFile {
            path: path.to_owned(),
            header,
            map,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of tokens.
    pub fn len(&self) -> u64 {
        self.header.tokens
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of different tokens: every token is below it.
    pub fn vocab(&self) -> u64 {
        self.header.vocab
    }

    /// Bytes of the text that the tokens stand for, so that a loss per token can be told per byte.
    pub fn source_bytes(&self) -> u64 {
        self.header.source_bytes
    }

    /// What made the tokens.
    pub fn tokenizer(&self) -> &TokenizerId {
        &self.header.tokenizer
    }

    /// `len` tokens from position `start` on.
    ///
    /// # Errors
    ///
    /// [`TextError::Range`] if they reach beyond the last token; [`TextError::OutOfVocab`] for a token that the
    /// vocabulary lacks.
    pub fn read(&self, start: u64, len: usize) -> Result<Vec<i64>, TextError> {
        let bytes = self.bytes(start, len)?;
        let tokens: Vec<i64> = match self.header.width {
            2 => {
                let (tokens, _) = bytes.as_chunks();
                let token = |&token| i64::from(u16::from_le_bytes(token));
                tokens.iter().map(token).collect()
            }
            _ => {
                let (tokens, _) = bytes.as_chunks();
                let token = |&token| i64::from(u32::from_le_bytes(token));
                tokens.iter().map(token).collect()
            }
        };
        let vocab = self.header.vocab as i64;
        match tokens.iter().position(|&token| token >= vocab) {
            None => Ok(tokens),
            Some(at) => Err(TextError::OutOfVocab {
                name: self.path.display().to_string(),
                position: start + at as u64,
                token: tokens[at] as u32,
                vocab: self.header.vocab,
            }),
        }
    }

    fn bytes(&self, start: u64, len: usize) -> Result<&[u8], TextError> {
        let end = start.checked_add(len as u64);
        if end.is_none_or(|end| end > self.len()) {
            return Err(TextError::Range {
                name: self.path.display().to_string(),
                start,
                len,
                tokens: self.len(),
            });
        }
        // No overflow: the file is mapped, so its length is a usize.
        let width = self.header.width;
        let from = HEADER + start as usize * width;
        Ok(&self.map[from..from + len * width])
    }
}
