//! A model as a chain of blocks: what it takes to obey every checkpoint policy.

use burn::backend::DispatchTensor;
use burn::module::Module;
use leanburn_memory::chain::{Piece, Schedule};

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
    /// Runs all blocks on `value`; block `i` stands between the memory probes `i` and `i + 1`.
    pub fn run<L: Link>(&self, blocks: &[L], value: L::Value) -> L::Value {
        let schedule = self.policy.schedule(blocks.len());
        let mut value = probed(value, 0);
        let mut start = 0;
        for piece in &schedule.0 {
            let end = start + piece.blocks();
            value = match piece {
                Piece::Kept { .. } => (start..end).fold(value, |value, index| {
                    probed(blocks[index].step(value), index + 1)
                }),
                Piece::Again { .. } => probed(self.piece(piece, &blocks[start..end], value), end),
            };
            start = end;
        }
        value
    }

    /// For each of so many blocks, whether it goes without the outputs of its norms and activations.
    pub fn cheap(&self, blocks: usize) -> Vec<bool> {
        self.policy.schedule(blocks).cheap()
    }

    fn pieces<L: Link>(&self, schedule: &Schedule, blocks: &[L], mut value: L::Value) -> L::Value {
        let mut start = 0;
        for piece in &schedule.0 {
            let end = start + piece.blocks();
            value = self.piece(piece, &blocks[start..end], value);
            start = end;
        }
        value
    }

    fn piece<L: Link>(&self, piece: &Piece, blocks: &[L], value: L::Value) -> L::Value {
        let Piece::Again { pieces, parked } = piece else {
            return blocks.iter().fold(value, |value, block| block.step(value));
        };
        let checkpoint = Checkpoint {
            preserve_rng: self.random,
            offload: match parked {
                true => Offload::Host,
                false => self.offload,
            },
            ..Checkpoint::default()
        };
        let (chain, pieces) = (self.clone(), pieces.clone());
        checkpoint.run(&blocks.to_vec(), value, move |blocks, value| {
            chain.pieces(&pieces, blocks, value)
        })
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
