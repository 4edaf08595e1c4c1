use burn::tensor::{Device, Int, Tensor, TensorData};

/// The target of a token that does not count.
pub const IGNORE: i64 = -100;

/// A batch of token sequences on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTokens {
    /// `[batch, context]`, row-major; 0 where there is no token.
    pub inputs: Vec<i64>,
    /// `[batch, context]`, the token after each input; [`IGNORE`] where there is none.
    pub targets: Vec<i64>,
    /// Sequences.
    pub batch: usize,
    /// Tokens of each.
    pub context: usize,
    /// Whether a sequence begins anew, `[batch]`: nothing carried over from the last batch belongs to it.
    pub reset: Vec<bool>,
    /// Targets that count.
    pub counted: usize,
    /// How many samples of the epoch's order this batch used up.
    pub visited: usize,
}

impl HostTokens {
    /// Of rows of inputs and targets, which are padded to `context`.
    pub(super) fn new(rows: Vec<Row>, context: usize, visited: usize) -> HostTokens {
        let mut host = HostTokens {
            inputs: Vec::with_capacity(rows.len() * context),
            targets: Vec::with_capacity(rows.len() * context),
            batch: rows.len(),
            context,
            reset: Vec::with_capacity(rows.len()),
            counted: 0,
            visited,
        };
        for row in rows {
            // One more token than there are targets.
            let count = row.tokens.len().saturating_sub(1);
            host.inputs.extend(&row.tokens[..count]);
            host.targets.extend(row.tokens.iter().skip(1));
            host.inputs.resize(host.inputs.len() + context - count, 0);
            host.targets
                .resize(host.targets.len() + context - count, IGNORE);
            host.counted += count;
            host.reset.push(row.reset);
        }
        host
    }

    /// Moves the batch to `device`.
    pub fn into_device(self, device: &Device) -> Tokens {
        let tensor = |data| {
            let data = TensorData::new(data, [self.batch, self.context]);
            Tensor::<2, Int>::from_data(data, device)
        };
        Tokens {
            inputs: tensor(self.inputs),
            targets: tensor(self.targets),
            reset: self.reset,
            counted: self.counted,
        }
    }
}

/// Consecutive tokens, inputs and the last target.
pub(super) struct Row {
    pub tokens: Vec<i64>,
    pub reset: bool,
}

/// A batch of token sequences on a device.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// `[batch, context]`.
    pub inputs: Tensor<2, Int>,
    /// `[batch, context]`, [`IGNORE`] where nothing is asked.
    pub targets: Tensor<2, Int>,
    /// Whether a sequence begins anew, `[batch]`.
    pub reset: Vec<bool>,
    /// Targets that count.
    pub counted: usize,
}
