//! A model as a chain of blocks: what it takes to obey every checkpoint policy.

use burn::backend::DispatchTensor;
use burn::module::Module;

use super::{Checkpoint, CheckpointPolicy, Offload, Tensors};
use crate::ops::probe_dispatch;

/// A block that takes what the block before it gives.
pub trait Link: Module + Sync + 'static {
    /// What goes from block to block.
    type Value: Tensors;

    /// The block's forward.
    fn step(&self, value: Self::Value) -> Self::Value;
}

/// How a model runs its chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// What is recomputed.
    pub policy: CheckpointPolicy,
    /// Where kept inputs wait.
    pub offload: Offload,
    /// The blocks draw random numbers (dropout), which a recomputation must draw again.
    pub random: bool,
}

impl Chain {
    /// Runs all blocks on `value`; block `i` ends at memory probe `i`.
    pub fn run<L: Link>(&self, blocks: &[L], mut value: L::Value) -> L::Value {
        let checkpoint = Checkpoint {
            preserve_rng: self.random,
            offload: self.offload,
            ..Checkpoint::default()
        };
        for (range, again) in self.policy.segments.pieces(blocks.len()) {
            if again {
                let last = range.end - 1;
                let segment = blocks[range].to_vec();
                value = checkpoint.run(&segment, value, |blocks, value| {
                    blocks.iter().fold(value, |value, block| block.step(value))
                });
                value = probed(value, last);
            } else {
                for index in range {
                    value = probed(blocks[index].step(value), index);
                }
            }
        }
        value
    }
}

fn probed<T: Tensors>(value: T, index: usize) -> T {
    let mut floats: Vec<DispatchTensor> = Vec::new();
    let rest = value.split(&mut floats);
    if let Some(first) = floats.first_mut() {
        *first = probe_dispatch(first.clone(), index);
    }
    T::join(rest, &mut floats.into_iter())
}
