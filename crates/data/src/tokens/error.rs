use std::io;
use std::path::PathBuf;

/// What can go wrong between a text and a batch of tokens. Every message is one line: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    #[error("cannot read {path} ({cause}): check that it is a file, whole and readable by you")]
    Read { path: PathBuf, cause: io::Error },

    #[error(
        "cannot write {path} ({cause}): its folder must exist, be writable by you and have room"
    )]
    Write { path: PathBuf, cause: io::Error },

    #[error(
        "{path} is not a token file (it does not begin with LBTOKENS): build one from the text"
    )]
    NotTokens { path: PathBuf },

    #[error(
        "{path} is a token file of version {version}, not {known}: build it again with this version of leanburn"
    )]
    Version {
        path: PathBuf,
        version: u32,
        known: u32,
    },

    #[error("the header of token file {path} is damaged ({cause}): build the file again")]
    Header { path: PathBuf, cause: String },

    #[error(
        "token file {path} has {got} bytes instead of {expected}: copy it again, or build it again"
    )]
    Length {
        path: PathBuf,
        got: u64,
        expected: u64,
    },

    #[error(
        "token {position} of {name} is {token}, but its vocabulary is {vocab}: build the tokens again"
    )]
    OutOfVocab {
        name: String,
        position: u64,
        token: u32,
        vocab: u64,
    },

    #[error("tokens {start}..+{len} are not in {name}: it has {tokens}")]
    Range {
        name: String,
        start: u64,
        len: usize,
        tokens: u64,
    },

    #[error("a vocabulary of {vocab} does not work: use 1 to 4294967296 tokens")]
    Vocab { vocab: u64 },

    #[error(
        "cannot use tokenizer {name} ({cause}): give a tokenizer.json of Hugging Face's format, or use the byte tokenizer"
    )]
    BadTokenizer { name: String, cause: String },

    #[error(
        "the tokenizer failed on the text after byte {offset} ({cause}): mend the text there, or use a tokenizer with an unknown token"
    )]
    Tokenizing { offset: u64, cause: String },

    #[error(
        "the text is not UTF-8 at byte {offset}: convert it, replace such bytes (InvalidUtf8::Replace), or use the byte tokenizer"
    )]
    InvalidUtf8 { offset: u64 },

    #[error("token {token} cannot be decoded: the vocabulary is {vocab}")]
    Undecodable { token: u32, vocab: u64 },

    #[error(
        "the tokenizer cannot decode these tokens ({cause}): decode them with the tokenizer that made them"
    )]
    Decoding { cause: String },

    /// An error in the text of a file.
    #[error("{path}: {error}")]
    InFile {
        path: PathBuf,
        error: Box<TextError>,
    },

    #[error(
        "the text cannot be read beyond byte {offset} ({cause}): check that it is whole and readable by you"
    )]
    Text { offset: u64, cause: io::Error },

    #[error(
        "the jargon file that ships with leanburn is damaged ({cause}): build leanburn again from a clean checkout"
    )]
    DamagedJargon { cause: io::Error },

    #[error("a validation part of {fraction} does not work: use a fraction from 0 to below 1")]
    Fraction { fraction: f64 },

    #[error(
        "the {split} part of {name} is too short: {needed} tokens are needed and {present} present; use more text, a shorter context or another validation fraction"
    )]
    TooShort {
        name: String,
        split: &'static str,
        needed: u64,
        present: u64,
    },

    #[error("{setting} is 0: set it to 1 or more")]
    Zero { setting: &'static str },

    #[error("{setting} is too large for this computer's memory: use less")]
    TooLarge { setting: &'static str },
}

/// The first line of a foreign error, so that ours stays one line.
pub(super) fn one_line(cause: impl std::fmt::Display) -> String {
    let text = cause.to_string();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
