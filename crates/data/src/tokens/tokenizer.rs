#[cfg(test)]
mod tests;

use std::fs;
use std::io::{BufRead, ErrorKind};
use std::path::Path;

use super::chunks::Chunks;
use super::{JsonTokenizer, TextError, TokenizerId};

/// Bytes of text that a `tokenizer.json` is given at once: enough that the pieces' ends do not matter, and little
/// enough that the some 100 bytes which it allocates per token do not either.
const PIECE: usize = 1 << 18;
/// Bytes that become tokens at once in the byte tokenizer.
const BYTES: usize = 1 << 13;

/// What turns text into tokens and back.
#[derive(Debug)]
pub enum Tokenizer {
    /// A token is a byte: 256 of them, for any input, which comes back exactly.
    Bytes,
    /// The tokens of a `tokenizer.json`; the text must be UTF-8, see [`InvalidUtf8`].
    Json(Box<JsonTokenizer>),
}

/// What a [`Tokenizer::Json`] does with bytes that are not UTF-8; the byte tokenizer takes them as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidUtf8 {
    /// End with an error that tells their place.
    #[default]
    Refuse,
    /// Put U+FFFD for each of them, as [`String::from_utf8_lossy`] does, and count.
    Replace,
}

/// What [`Tokenizer::encode_file`] went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// Tokens handed over.
    pub tokens: u64,
    /// Bytes of text, as read.
    pub bytes: u64,
    /// Sequences of bytes that were not UTF-8 and were replaced.
    pub replaced: u64,
}

impl Tokenizer {
    /// Reads a `tokenizer.json` of Hugging Face's `tokenizers`.
    ///
    /// # Errors
    ///
    /// [`TextError::Read`] if the file cannot be read; [`TextError::BadTokenizer`] if it is not such a tokenizer or has
    /// no tokens.
    pub fn open(path: impl AsRef<Path>) -> Result<Tokenizer, TextError> {
        let path = path.as_ref();
        let json = fs::read(path).map_err(|cause| TextError::Read {
            path: path.to_owned(),
            cause,
        })?;
        let tokenizer = JsonTokenizer::new(&path.display().to_string(), &json)?;
        Ok(Tokenizer::Json(Box::new(tokenizer)))
    }

    /// Every token is below it. In a `tokenizer.json` it counts the added tokens and gaps between the ids.
    pub fn vocab(&self) -> u64 {
        match self {
            Tokenizer::Bytes => 256,
            Tokenizer::Json(json) => json.vocab(),
        }
    }

    /// Name and fingerprint, which a [`TokenFile`](super::TokenFile) keeps.
    pub fn id(&self) -> TokenizerId {
        match self {
            Tokenizer::Bytes => TokenizerId {
                name: "bytes".into(),
                fingerprint: 0,
            },
            Tokenizer::Json(json) => json.id().clone(),
        }
    }

    /// The tokens of a short text, such as a prompt.
    ///
    /// # Errors
    ///
    /// [`TextError::InvalidUtf8`] and [`TextError::Tokenizing`], with a `tokenizer.json` only.
    pub fn encode(&self, text: &[u8]) -> Result<Vec<u32>, TextError> {
        match self {
            Tokenizer::Bytes => Ok(text.iter().copied().map(u32::from).collect()),
            Tokenizer::Json(json) => {
                let text = str::from_utf8(text).map_err(|error| TextError::InvalidUtf8 {
                    offset: error.valid_up_to() as u64,
                })?;
                json.encode(text, 0)
            }
        }
    }

    /// Hands the tokens of a whole text to `sink`, piece by piece, in bounded memory whatever the length of its lines.
    /// Line ends stay as they are, and so does a byte order mark.
    ///
    /// A `tokenizer.json` sees pieces of at most 256 KiB, each as a text of its own, that end after a line which text
    /// follows directly. The tokens are those of the whole text, unless the tokenizer puts something before every text
    /// (a space, often) or has tokens that reach across such line ends. In a run of 256 KiB without one a piece ends
    /// after any line, else before white space, else between two characters: tokens may differ from those of the whole
    /// text there, though decoded they are the same. A tokenizer without an unknown token may leave characters out.
    ///
    /// # Errors
    ///
    /// [`TextError::Text`] if reading fails, [`TextError::InvalidUtf8`] if so asked, [`TextError::Tokenizing`], and
    /// whatever `sink` returns.
    pub fn encode_file(
        &self,
        reader: impl BufRead,
        invalid: InvalidUtf8,
        sink: impl FnMut(&[u32]) -> Result<(), TextError>,
    ) -> Result<Encoded, TextError> {
        match self {
            Tokenizer::Bytes => encode_bytes(reader, sink),
            Tokenizer::Json(json) => encode_text(json, reader, invalid, PIECE, sink),
        }
    }

    /// The text of some tokens. With a `tokenizer.json` a character that is cut at either end comes out as U+FFFD.
    ///
    /// # Errors
    ///
    /// [`TextError::Undecodable`] for a token that the vocabulary lacks, [`TextError::Decoding`].
    pub fn decode(&self, tokens: &[u32]) -> Result<Vec<u8>, TextError> {
        let byte = |&token: &u32| {
            u8::try_from(token).map_err(|_| TextError::Undecodable { token, vocab: 256 })
        };
        match self {
            Tokenizer::Bytes => tokens.iter().map(byte).collect(),
            Tokenizer::Json(json) => Ok(json.decode(tokens)?.into_bytes()),
        }
    }
}

fn encode_bytes(
    mut reader: impl BufRead,
    mut sink: impl FnMut(&[u32]) -> Result<(), TextError>,
) -> Result<Encoded, TextError> {
    let mut done = Encoded::default();
    let mut tokens = Vec::with_capacity(BYTES);
    loop {
        let buffer = match reader.fill_buf() {
            Ok([]) => return Ok(done),
            Ok(buffer) => &buffer[..buffer.len().min(BYTES)],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(cause) => {
                let offset = done.bytes;
                return Err(TextError::Text { offset, cause });
            }
        };
        tokens.clear();
        tokens.extend(buffer.iter().copied().map(u32::from));
        reader.consume(tokens.len());
        done.bytes += tokens.len() as u64;
        done.tokens += tokens.len() as u64;
        sink(&tokens)?;
    }
}

fn encode_text(
    json: &JsonTokenizer,
    reader: impl BufRead,
    invalid: InvalidUtf8,
    piece: usize,
    mut sink: impl FnMut(&[u32]) -> Result<(), TextError>,
) -> Result<Encoded, TextError> {
    let mut chunks = Chunks::new(reader, piece, invalid);
    let mut tokens = 0;
    while let Some((offset, text)) = chunks.next()? {
        let ids = json.encode(text, offset)?;
        tokens += ids.len() as u64;
        sink(&ids)?;
    }
    Ok(Encoded {
        tokens,
        bytes: chunks.bytes,
        replaced: chunks.replaced,
    })
}
