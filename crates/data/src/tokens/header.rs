#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use super::TextError;
use super::hash::fnv1a;

/// Bytes before the first token; a multiple of every token's width, so that the tokens are aligned.
pub(super) const HEADER: usize = 64;
pub(super) const MAGIC: [u8; 8] = *b"LBTOKENS";
const VERSION: u32 = 1;
/// Bytes of a tokenizer's name.
const NAME: usize = 12;
/// Where the checksum of everything before it stands.
const CHECKSUM: usize = HEADER - 4;

/// Which tokenizer made some tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenizerId {
    /// The kind, for people: `bytes`, `BPE`. At most 12 bytes of it are kept in a file.
    pub name: String,
    /// A hash of what defines the tokenizer: the bytes of its file.
    pub fingerprint: u64,
}

impl fmt::Display for TokenizerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:016x}", self.name, self.fingerprint)
    }
}

/// The first 64 bytes of a token file, all numbers little-endian:
///
/// | bytes | what |
/// |---|---|
/// | 0..8 | `LBTOKENS` |
/// | 8..12 | version, u32: 1 |
/// | 12..16 | bytes of a token, u32: 2 or 4 |
/// | 16..24 | vocabulary, u64 |
/// | 24..32 | number of tokens, u64 |
/// | 32..40 | bytes of the text that the tokens stand for, u64 |
/// | 40..48 | fingerprint of the tokenizer, u64 |
/// | 48..60 | name of the tokenizer, UTF-8, filled up with zeros |
/// | 60..64 | low half of the FNV-1a hash of bytes 0..60, u32 |
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub width: usize,
    pub vocab: u64,
    pub tokens: u64,
    pub source_bytes: u64,
    pub tokenizer: TokenizerId,
}

impl Header {
    /// Bytes that a token of this vocabulary takes.
    ///
    /// # Errors
    ///
    /// [`TextError::Vocab`] for a vocabulary that is empty or beyond u32.
    pub fn width_of(vocab: u64) -> Result<usize, TextError> {
        match vocab {
            1..=0x1_0000 => Ok(2),
            0x1_0001..=0x1_0000_0000 => Ok(4),
            _ => Err(TextError::Vocab { vocab }),
        }
    }

    /// Bytes of the whole file, if that is a number.
    pub fn file_bytes(&self) -> Option<u64> {
        let tokens = self.tokens.checked_mul(self.width as u64)?;
        tokens.checked_add(HEADER as u64)
    }

    pub fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(self.width as u32).to_le_bytes());
        put(16, &self.vocab.to_le_bytes());
        put(24, &self.tokens.to_le_bytes());
        put(32, &self.source_bytes.to_le_bytes());
        put(40, &self.tokenizer.fingerprint.to_le_bytes());
        let name = &self.tokenizer.name;
        put(48, &name.as_bytes()[..name.floor_char_boundary(NAME)]);
        seal(&mut bytes);
        bytes
    }

    /// Reads the header of `path`, whose length in bytes is `file_bytes`.
    ///
    /// # Errors
    ///
    /// [`TextError::NotTokens`], [`TextError::Version`], [`TextError::Header`] and [`TextError::Length`].
    pub fn parse(bytes: &[u8; HEADER], file_bytes: u64, path: &Path) -> Result<Header, TextError> {
        let path = path.to_owned();
        if bytes[..8] != MAGIC {
            return Err(TextError::NotTokens { path });
        }
        if file_bytes < HEADER as u64 {
            return Err(TextError::Length {
                path,
                got: file_bytes,
                expected: HEADER as u64,
            });
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(TextError::Version {
                path,
                version,
                known: VERSION,
            });
        }
        match Header::fields(bytes) {
            Err(cause) => Err(TextError::Header { path, cause }),
            Ok((header, expected)) if expected == file_bytes => Ok(header),
            Ok((_, expected)) => Err(TextError::Length {
                path,
                got: file_bytes,
                expected,
            }),
        }
    }

    /// The fields after the version and the bytes of the file that they promise, or what is wrong with them.
    fn fields(bytes: &[u8; HEADER]) -> Result<(Header, u64), String> {
        let (width, vocab) = (u32_at(bytes, 12), u64_at(bytes, 16));
        if !matches!(width, 2 | 4) {
            return Err(format!("tokens of {width} bytes instead of 2 or 4"));
        }
        let most = 1u64 << (8 * width);
        if !(1..=most).contains(&vocab) {
            return Err(format!(
                "a vocabulary of {vocab}, where tokens of {width} bytes allow 1 to {most}"
            ));
        }
        let name = bytes[48..48 + NAME].split(|&byte| byte == 0).next();
        let header = Header {
            width: width as usize,
            vocab,
            tokens: u64_at(bytes, 24),
            source_bytes: u64_at(bytes, 32),
            tokenizer: TokenizerId {
                name: String::from_utf8_lossy(name.unwrap_or_default()).into_owned(),
                fingerprint: u64_at(bytes, 40),
            },
        };
        let Some(file_bytes) = header.file_bytes() else {
            return Err(format!("{} tokens", header.tokens));
        };
        let mut sealed = *bytes;
        seal(&mut sealed);
        match sealed == *bytes {
            true => Ok((header, file_bytes)),
            false => Err("its checksum is wrong".into()),
        }
    }
}

fn seal(bytes: &mut [u8; HEADER]) {
    let checksum = fnv1a(&bytes[..CHECKSUM]) as u32;
    bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
}

fn u32_at(bytes: &[u8; HEADER], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}

fn u64_at(bytes: &[u8; HEADER], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
