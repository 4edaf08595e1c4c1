//! How a Transformer computes: dtypes, what is recomputed, and the sizes of chunks.

use leanburn_levers::checkpoint::Chain;
use leanburn_levers::{Attention, CheckpointPolicy, CrossEntropy, Offload, Policy};

/// What both kinds of network have besides their parameters and sizes.
#[derive(Clone, Debug)]
pub(super) struct Computing {
    pub policy: Policy,
    pub chain: Chain,
    pub attention: Attention,
    pub loss: CrossEntropy,
}

impl Computing {
    /// In f32, with everything kept.
    pub fn new(attention: Attention, dropout: f64) -> Self {
        Self {
            policy: Policy::FP32,
            chain: Chain {
                random: dropout > 0.0,
                ..Chain::default()
            },
            attention,
            loss: CrossEntropy::default(),
        }
    }

    pub fn checkpoint(&mut self, policy: CheckpointPolicy, offload: Offload) {
        self.chain.policy = policy;
        self.chain.offload = offload;
    }

    /// `None` leaves attention as it is, and the loss to choose for itself.
    pub fn chunks(&mut self, attention: Option<usize>, loss: Option<usize>) {
        if let Some(size) = attention {
            self.attention = self.attention.with_chunk(size);
        }
        self.loss.chunk = loss;
    }
}
