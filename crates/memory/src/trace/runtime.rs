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
    /// A GPU through wgpu's shader language: a pool, looked at between blocks with all work done.
    Wgpu,
    /// The same through Vulkan or Metal.
    Native,
    /// CUDA and ROCm, which pad rows.
    Cuda,
}

/// Constants that no rule follows from, fitted on burn 0.22.1 and x86-64 with two cores:
/// `cargo run --release --example accuracy_matrix` prints what is left of the error.
mod fitted {
    /// Bytes of autodiff's graph for an operation of the forward, until the end of the backward.
    pub const GRAPH: u64 = 450;
    /// Bytes of a stored tensor's place in module, graph and optimizer.
    pub const STORED: u64 = 2300;
}

/// What wgpu rounds a buffer up to, on adapters that ask for no more.
const WGPU_ALIGNMENT: u64 = 32;
/// What CUDA rounds one up to.
const CUDA_ALIGNMENT: u64 = 512;

impl Runtime {
    /// What an operation does there.
    pub(super) fn effect(
        self,
        ir: &OperationIr,
        inputs: &[Use],
        layouts: &[Layout],
        output: &[usize],
    ) -> Effect {
        flex::effect(ir, inputs, layouts, output)
    }

    /// Whether a pool lies between the tensors and the device.
    pub fn has_pool(self) -> bool {
        self != Self::Flex
    }

    /// What a tensor takes.
    pub(super) fn size(self, tensor: &Use) -> u64 {
        match self {
            Self::Flex => tensor.bytes,
            Self::Wgpu | Self::Native => tensor.bytes.next_multiple_of(WGPU_ALIGNMENT),
            Self::Cuda => pitched(tensor).next_multiple_of(CUDA_ALIGNMENT),
        }
    }

    /// What is there besides tensors: the buffers of the pool's threads, and what a module is made of.
    pub(super) fn besides(self, trace: &Trace) -> u64 {
        if self.has_pool() {
            return 0;
        }
        let until_start = |operation: &&Operation| {
            !matches!(operation, Operation::Note(Note::Mark(Mark::Start, _)))
        };
        let stored =
            |operation: &&Operation| matches!(operation, Operation::Note(Note::Stored { .. }));
        let before = trace.operations.iter().take_while(until_start);
        gemm::threads() * gemm::buffer() + fitted::STORED * before.filter(stored).count() as u64
    }

    /// Of the graph, for each operation of the forward.
    pub(super) fn graph(self) -> u64 {
        match self {
            Self::Flex => fitted::GRAPH,
            Self::Wgpu | Self::Native | Self::Cuda => 0,
        }
    }
}

/// CUDA starts every row of more than one element at a multiple of its bytes' next power of two, within 16 and
/// 512 (`PitchedMemoryLayoutPolicy` of cubecl-server 0.11.3).
fn pitched(tensor: &Use) -> u64 {
    let row = tensor.shape.last().copied().unwrap_or(1);
    if row <= 1 || tensor.bytes == 0 {
        return tensor.bytes;
    }
    let bytes = (row * tensor.dtype.size()) as u64;
    let pitch = bytes.next_power_of_two().clamp(16, 512);
    tensor.bytes / bytes * bytes.next_multiple_of(pitch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::DType;

    #[test]
    fn cuda_pads_rows_and_others_do_not() {
        let tensor = |shape: &[usize]| Use {
            id: 0,
            bytes: 4 * shape.iter().product::<usize>() as u64,
            shape: shape.to_vec(),
            dtype: DType::F32,
            last: false,
        };
        let filter = tensor(&[64, 64, 3, 3]);
        assert_eq!(Runtime::Flex.size(&filter), 147_456);
        assert_eq!(Runtime::Wgpu.size(&filter), 147_456);
        assert_eq!(Runtime::Cuda.size(&filter), 64 * 64 * 3 * 16);
        assert_eq!(Runtime::Cuda.size(&tensor(&[10, 1000])), 10 * 4096);
        assert_eq!(Runtime::Cuda.size(&tensor(&[64])), 512);
        assert_eq!(Runtime::Wgpu.size(&tensor(&[3])), 32);
    }
}
