//! Transformers: a decoder that writes ([`Gpt`]) and an encoder that reads ([`Encoder`]).

pub mod encoder;
pub mod gpt;
mod norm;
mod projection;

pub use encoder::{Encoder, EncoderConfig};
pub use gpt::{Arch, Gpt, GptConfig, State};
pub use norm::Norm;

/// Sizes that no network can be built from.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SizeError(String);

/// Refuses a condition that does not hold, in words.
fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), SizeError> {
    match holds {
        true => Ok(()),
        false => Err(SizeError(what())),
    }
}
