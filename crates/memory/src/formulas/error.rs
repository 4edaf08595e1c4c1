//! Why a formula has no answer.

use thiserror::Error;

/// The largest size taken: more is a slip, and the products of such sizes still mean something.
pub(super) const LARGEST: u64 = u32::MAX as u64;

/// Why a memory formula was not evaluated. Every message is one line and says what to write.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormulaError {
    /// A key that is not known.
    #[error("unknown key `{key}` in the {what}: use {known}")]
    UnknownKey {
        /// `transformer` or `parallel setup`.
        what: &'static str,
        /// What was given.
        key: String,
        /// The keys there are.
        known: String,
    },
    /// A key given more than once.
    #[error("`{key}` is given twice in the {what}: give it once")]
    RepeatedKey {
        /// `transformer` or `parallel setup`.
        what: &'static str,
        /// The key.
        key: String,
    },
    /// A key without which there is no answer.
    #[error("the {what} has no `{key}`: add {key}=N, a whole number from 1 to {LARGEST}")]
    MissingKey {
        /// `transformer` or `parallel setup`.
        what: &'static str,
        /// The key.
        key: &'static str,
    },
    /// A size that is 0, too large or no whole number.
    #[error("{key} can't be `{given}`: {key} is a whole number from 1 to {LARGEST}")]
    Size {
        /// The key.
        key: &'static str,
        /// What was given.
        given: String,
    },
    /// A flag with a value.
    #[error("`{key}={given}`: {key} takes no value, write {key} alone or leave it out")]
    Flag {
        /// The key.
        key: &'static str,
        /// What was given.
        given: String,
    },
    /// A number of parts that does not divide what it has to divide.
    #[error("{parts}={count} does not divide {whole}={size}: {parts} must be one of its divisors")]
    Indivisible {
        /// The key of the number of parts.
        parts: &'static str,
        /// The number of parts.
        count: u64,
        /// The key of what is divided.
        whole: &'static str,
        /// Its size.
        size: u64,
    },
    /// Sequence parallelism without tensor parallelism.
    #[error(
        "sp splits the sequence over the tensor-parallel devices: add tp=2 or more, or drop sp"
    )]
    SequenceParallelAlone,
    /// A name that is not known.
    #[error("unknown {what} `{given}`: use {known}")]
    UnknownName {
        /// What is named: `recompute policy`, `optimizer`, ...
        what: &'static str,
        /// What was given.
        given: String,
        /// The names there are.
        known: String,
    },
    /// More than 64 bits hold.
    #[error("{figure} exceeds 2^64 - 1: make the model, the sequence or the batch smaller")]
    TooLarge {
        /// What was computed.
        figure: String,
    },
}

/// `size` where it is in the range of every size.
pub(super) fn in_range(key: &'static str, size: u64) -> Result<u64, FormulaError> {
    match size {
        1..=LARGEST => Ok(size),
        _ => Err(FormulaError::Size {
            key,
            given: size.to_string(),
        }),
    }
}

/// Whether `parts` cuts `whole` evenly; both are at least 1 and named by their keys.
pub(super) fn divides(
    (parts, count): (&'static str, u64),
    (whole, size): (&'static str, u64),
) -> Result<(), FormulaError> {
    if size.is_multiple_of(count) {
        return Ok(());
    }
    Err(FormulaError::Indivisible {
        parts,
        count,
        whole,
        size,
    })
}
