//! The kinds of backends that a trace can be replayed for.

use burn_ir::OperationIr;

use super::layout::Layout;
use super::replay::Effect;
use super::{Note, Operation, Trace, Use, flex, gemm};
use crate::Mark;

/// How a backend deals with memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// The CPU, whose allocator is the heap: every byte counts, and the peak is exact.
    #[default]
    Flex,
    /// A GPU through CubeCL: a pool, looked at between blocks with all work done.
    Pool,
}

/// Constants that no rule follows from. Each was fitted on burn 0.22.1 with
/// `cargo run --release --example accuracy_matrix`, on x86-64 with two cores.
mod fitted {
    /// Bytes of autodiff's graph for an operation of the forward, until the end of the backward.
    pub const GRAPH: u64 = 450;
    /// Bytes of a stored tensor's place in module, graph and optimizer.
    pub const STORED: u64 = 2300;
    /// What a pool rounds every buffer up to.
    pub const ALIGNMENT: u64 = 32;
}

impl Runtime {
    pub(super) fn effect(
        self,
        ir: &OperationIr,
        inputs: &[Use],
        layouts: &[Layout],
        output: &[usize],
    ) -> Effect {
        flex::effect(ir, inputs, layouts, output)
    }

    /// Whether kernels that stand for several operations exist there.
    pub(super) fn has_kernels(self) -> bool {
        self == Self::Flex
    }

    /// Whether a peak is seen at marks only.
    pub(super) fn samples(self) -> bool {
        self == Self::Pool
    }

    /// What a tensor of this size takes.
    pub(super) fn rounded(self, bytes: u64) -> u64 {
        match self {
            Self::Flex => bytes,
            Self::Pool => bytes.next_multiple_of(fitted::ALIGNMENT),
        }
    }

    /// What is there besides tensors: the buffers of the pool's threads, and what a module is made of.
    pub(super) fn besides(self, trace: &Trace) -> u64 {
        if self == Self::Pool {
            return 0;
        }
        let until_start = |operation: &&Operation| {
            !matches!(operation, Operation::Note(Note::Mark(Mark::Start, _)))
        };
        let stored =
            |operation: &&Operation| matches!(operation, Operation::Note(Note::Stored { .. }));
        let stored = trace
            .operations
            .iter()
            .take_while(until_start)
            .filter(stored);
        gemm::threads() * gemm::buffer() + fitted::STORED * stored.count() as u64
    }

    /// Of the graph, for each operation of the forward.
    pub(super) fn graph(self) -> u64 {
        match self {
            Self::Flex => fitted::GRAPH,
            Self::Pool => 0,
        }
    }
}
