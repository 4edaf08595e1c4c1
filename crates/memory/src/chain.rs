//! The chain planner: the schedule of a chain of blocks that takes least time under a budget of bytes.
//!
//! A training step runs the blocks forward, then the head (all behind them, up to the loss, and back), then the
//! blocks backward. Every block can keep what its backward wants, keep less of it and compute that again, or be
//! part of a segment of which only the input is kept, on the device or in host memory, and that runs forward a
//! second time when the backward comes to it. Then the same choice is there again for every block of the segment.
//!
//! [`Plans::of`] finds the best schedule for every budget up to a given one, by dynamic programming over pairs of
//! blocks and bytes: Beaumont, Eyraud-Dubois, Hermann, Joly and Shilova, *Optimal checkpointing for heterogeneous
//! chains* (2019, <https://arxiv.org/abs/1911.13214>), with cheaper ways to keep a block and the host besides.
//! [`Chain::cost`] says what a given schedule takes, and [`Chain::of`] where the numbers come from.

mod cost;
mod costs;
mod schedule;
mod solve;
#[cfg(test)]
mod tests;

pub use cost::Cost;
pub use costs::Traces;
pub use schedule::{Piece, Schedule, ScheduleError};
pub use solve::{Plan, Plans};

/// A chain of blocks with what each takes. Bytes are above what lives through the whole step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chain {
    /// What lives through the whole step, besides all below.
    pub base: u64,
    /// In the order of the forward.
    pub blocks: Vec<Block>,
    /// What comes out of the last block.
    pub output: u64,
    /// The most bytes while the head runs, forward and backward, besides what the blocks keep.
    pub head: u64,
    /// Seconds to move a byte to the host and back; `None` where that is no place of its own. An input that comes
    /// back while the segment before it still runs is not counted there.
    pub host: Option<f64>,
}

impl Chain {
    /// The same without the gradients of parameters, as in publications: for large batches they do not count.
    pub fn without_gradients(mut self) -> Self {
        for block in &mut self.blocks {
            let gradients = std::mem::take(&mut block.gradients);
            block.behind -= gradients.min(block.behind);
            for way in &mut block.ways {
                way.backward -= gradients.min(way.backward);
            }
        }
        self
    }
}

/// What one block takes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Its input, where only that is kept. Nothing for the first block, whose input is there anyway.
    pub input: u64,
    /// Seconds of its forward.
    pub forward: f64,
    /// The most bytes while it runs forward and keeps nothing; its output is in them, its input is not.
    pub alone: u64,
    /// The gradients of all behind it, and the one that arrives, when its backward begins.
    pub behind: u64,
    /// The part of that which are gradients of parameters.
    pub gradients: u64,
    /// The ways to keep it, at least one.
    pub ways: Vec<Way>,
}

/// A way to keep a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Way {
    /// Without the outputs of its norms and activations.
    pub cheap: bool,
    /// What it keeps; its output is in it, its input is not.
    pub kept: u64,
    /// The most bytes while it runs forward.
    pub forward: u64,
    /// The most while it runs backward: what it kept and the gradients behind it are in it.
    pub backward: u64,
    /// Seconds that it computes again in the backward.
    pub extra: f64,
}
