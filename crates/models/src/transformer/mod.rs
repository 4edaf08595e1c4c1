//! Transformers: a decoder that writes ([`Gpt`]) and an encoder that reads ([`Encoder`]).

mod computing;
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

fn check_sizes(sizes: &[(&str, usize)]) -> Result<(), SizeError> {
    for (name, size) in sizes {
        let fits = (1..=u32::MAX as usize).contains(size);
        require(fits, || {
            format!("{name} must be 1 to {}, not {size}", u32::MAX)
        })?;
    }
    Ok(())
}

fn check_heads(width: usize, heads: usize) -> Result<(), SizeError> {
    require(width.is_multiple_of(heads), || {
        let fitting = (1..=width.min(64)).filter(|n| width.is_multiple_of(*n));
        let fitting: Vec<_> = fitting.collect();
        format!("width {width} is no multiple of {heads} heads; heads may be {fitting:?}")
    })
}

fn check_dropout(dropout: f64) -> Result<(), SizeError> {
    require((0.0..1.0).contains(&dropout), || {
        "dropout must be 0 to below 1".into()
    })
}
