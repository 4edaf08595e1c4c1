//! The rows of the memory table, defined once for predict, measure and compare.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// One row of the memory table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Row {
    /// Trainable tensors as stored.
    Parameters,
    /// Non-trained state.
    Buffers,
    /// The batch.
    Inputs,
    /// What the forward keeps for the backward.
    Activations,
    /// Gradients alive at the peak.
    Gradients,
    /// What the optimizer holds.
    OptimizerState,
    /// Alive at the peak, none of the above.
    Temporaries,
    /// The allocator's own share.
    Allocator,
    /// What the device takes before any tensor.
    Framework,
}

impl Row {
    /// Every row, in the order of the table.
    pub const ALL: [Row; 9] = [
        Row::Parameters,
        Row::Buffers,
        Row::Inputs,
        Row::Activations,
        Row::Gradients,
        Row::OptimizerState,
        Row::Temporaries,
        Row::Allocator,
        Row::Framework,
    ];

    /// The name in tables: `optimizer state`.
    pub fn name(self) -> &'static str {
        match self {
            Row::Parameters => "parameters",
            Row::Buffers => "buffers",
            Row::Inputs => "inputs",
            Row::Activations => "activations",
            Row::Gradients => "gradients",
            Row::OptimizerState => "optimizer state",
            Row::Temporaries => "temporaries",
            Row::Allocator => "allocator",
            Row::Framework => "framework",
        }
    }

    /// The name in JSON: `optimizer_state`.
    pub fn key(self) -> &'static str {
        match self {
            Row::OptimizerState => "optimizer_state",
            row => row.name(),
        }
    }

    /// What counts towards the row, in one line.
    pub fn meaning(self) -> &'static str {
        match self {
            Row::Parameters => "trainable tensors as stored, master weights included",
            Row::Buffers => "BatchNorm statistics and other non-trained state",
            Row::Inputs => "the batch on the device",
            Row::Activations => "what the forward keeps for the backward",
            Row::Gradients => "gradients alive at the peak",
            Row::OptimizerState => "moments, masters held by the optimizer, scaler state",
            Row::Temporaries => {
                "alive at the peak and none of the above: casts, half copies of weights, recompute, op outputs in flight"
            }
            Row::Allocator => "padding, and reserved but unused (fragmentation)",
            Row::Framework => "device context and kernels: device total minus allocator total",
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The part of a training step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// From the batch to the loss.
    Forward,
    /// From the loss to the gradients.
    Backward,
    /// From the gradients to the new parameters.
    Update,
}

impl Phase {
    /// The name in tables and in JSON: `backward`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Bytes per row. A row nobody reported is `None`, which is not 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    // Indexed by `row as usize`: `Row::ALL` is in the order of the declaration.
    rows: [Option<Bytes>; Row::ALL.len()],
}

impl Ledger {
    /// The bytes of one row, `None` where it was not reported.
    pub fn get(&self, row: Row) -> Option<Bytes> {
        self.rows[row as usize]
    }

    /// Puts the bytes of one row, or `None` to say it is not reported.
    pub fn set(&mut self, row: Row, bytes: Option<Bytes>) {
        self.rows[row as usize] = bytes;
    }

    /// The same ledger with one row put; takes [`Bytes`] or `Option<Bytes>`.
    #[must_use]
    pub fn with(mut self, row: Row, bytes: impl Into<Option<Bytes>>) -> Self {
        self.set(row, bytes.into());
        self
    }

    /// The sum of the rows that were reported.
    pub fn known_total(&self) -> Bytes {
        self.rows.iter().flatten().copied().sum()
    }

    /// Every row with its bytes, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Row, Option<Bytes>)> + '_ {
        Row::ALL.into_iter().map(|row| (row, self.get(row)))
    }
}

/// What one step took, or is predicted to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// Where in the step the peak was.
    pub phase: Phase,
    /// The most bytes in use at once.
    pub peak: Bytes,
    /// What stayed in use after the forward, if it was read there.
    pub kept_after_forward: Option<Bytes>,
    /// The peak, row by row.
    pub rows: Ledger,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_distinct_and_in_order() {
        for (index, row) in Row::ALL.into_iter().enumerate() {
            assert_eq!(row as usize, index);
            assert_eq!(row.key(), row.name().replace(' ', "_"));
            assert!(!row.meaning().contains('\n'));
        }
    }

    #[test]
    fn an_unreported_row_is_none_and_adds_nothing() {
        let mut ledger = Ledger::default()
            .with(Row::Parameters, Bytes(3))
            .with(Row::Buffers, Some(Bytes(4)))
            .with(Row::Inputs, None);
        assert_eq!(ledger.get(Row::Parameters), Some(Bytes(3)));
        assert_eq!(ledger.get(Row::Inputs), None);
        assert_eq!(ledger.known_total(), Bytes(7));
        ledger.set(Row::Buffers, None);
        assert_eq!(ledger.known_total(), Bytes(3));
        assert_eq!(
            ledger.iter().filter(|(_, bytes)| bytes.is_some()).count(),
            1
        );
    }

    #[test]
    fn phases_are_lower_case() {
        assert_eq!(Phase::Backward.to_string(), "backward");
        assert_eq!(serde_json::to_string(&Phase::Update).unwrap(), "\"update\"");
        assert_eq!(
            serde_json::from_str::<Phase>("\"forward\"").unwrap(),
            Phase::Forward
        );
    }
}
