//! Text as tokens: files of them, and the batches that a language model trains on.
//!
//! A [`Tokenizer`] turns text into a [`TokenFile`] once ([`build`]); a [`Corpus`] is such a file, or the
//! [jargon file](Corpus::jargon) that ships with the crate, split into training and validation. A [`TextLoader`] makes
//! batches of independent windows; a [`SegmentedLoader`] walks through the text in order, for models that carry
//! their state from one segment to the next. Token files are mapped, not read: memory holds the batch at hand.

mod build;
mod chunks;
mod corpus;
mod error;
mod file;
mod hash;
mod header;
mod host;
mod json;
mod loader;
mod permutation;
mod segmented;
mod tokenizer;
mod writer;

pub use build::{BuildReport, build, build_from};
pub use corpus::{Corpus, VAL_FRACTION};
pub use error::TextError;
pub use file::TokenFile;
pub use header::TokenizerId;
pub use host::{HostTokens, IGNORE, Tokens};
pub use json::JsonTokenizer;
pub use loader::TextLoader;
pub use segmented::SegmentedLoader;
pub use tokenizer::{Encoded, InvalidUtf8, Tokenizer};
pub use writer::TokenWriter;
