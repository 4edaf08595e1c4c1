//! One evaluated formula, with who published it.

use std::fmt;

use super::notation::Formula;
use crate::{Bytes, Row};

/// One evaluated formula. Prints as `name = formula [source] = amount`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What was computed.
    pub name: &'static str,
    /// The row it counts towards, `None` where it is only a step on the way.
    pub row: Option<Row>,
    /// What was evaluated.
    pub formula: Formula,
    /// Who published it, and where.
    pub source: String,
    /// What came out.
    pub amount: Amount,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            formula,
            source,
            amount,
            ..
        } = self;
        write!(f, "{name} = {formula} [{source}] = {amount}")
    }
}

/// What a formula counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Parameters.
    Count(u64),
    /// Bytes, printed in binary units.
    Size(Bytes),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Count(count) => write!(f, "{count} parameters"),
            Amount::Size(bytes) => write!(f, "{bytes}"),
        }
    }
}
