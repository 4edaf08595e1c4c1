//! How much a traced step computes and moves, and how long that takes at best.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use burn::tensor::DType;
use burn_ir::{FloatOperationIr, ModuleOperationIr, OperationIr, TensorIr};

use super::layout::Layout;
use super::replay::{kernel_end, last_uses};
use super::{Note, Operation, Trace, flex};

/// What one kernel computes and moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations of matrix products and convolutions in f32; a multiplication with its addition
    /// counts as two. All else is small beside them.
    pub f32: u64,
    /// The same in half precision.
    pub half: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl Work {
    /// Floating-point operations.
    pub fn arithmetic(&self) -> u64 {
        self.f32.saturating_add(self.half)
    }
}

/// How fast a device is, per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Floating-point operations in f32.
    pub f32: f64,
    /// The same in half precision.
    pub half: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Rates {
    /// Two cores of the machine that the project is measured on; for ratios, which hold for CPUs like it:
    /// `cargo run --example memory_frontier` prints estimated beside measured time.
    pub const CPU: Self = Self {
        f32: 110e9,
        half: 110e9,
        bytes: 12e9,
    };

    /// Seconds that kernels take at best: each is held up by what it computes or by what it moves (Williams,
    /// Waterman and Patterson, *Roofline*, 2009, <https://doi.org/10.1145/1498765.1498785>).
    pub fn seconds(&self, work: &[Work]) -> f64 {
        let of = |work: &Work| {
            let computes = work.f32 as f64 / self.f32 + work.half as f64 / self.half;
            computes.max(work.bytes as f64 / self.bytes)
        };
        work.iter().map(of).sum()
    }
}

/// Counts the kernels of a trace.
pub struct Counter<'a> {
    trace: &'a Trace,
    last_use: HashMap<u64, usize>,
}

impl<'a> Counter<'a> {
    /// Of this trace.
    pub fn new(trace: &'a Trace) -> Self {
        Self {
            trace,
            last_use: last_uses(trace),
        }
    }

    /// The kernels of a range of operations; those that some backend runs as one are one.
    pub fn work(&self, range: Range<usize>) -> Vec<Work> {
        let operations = &self.trace.operations;
        let mut work = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let end = match &operations[at] {
                Operation::Note(Note::KernelBegin(_)) => kernel_end(self.trace, at).min(range.end),
                _ => at + 1,
            };
            let last_use = |id: &u64| self.last_use.get(id);
            let is_read_later = |id: &u64| last_use(id).is_some_and(|last| *last >= end);
            let one = kernel(&operations[at..end], is_read_later);
            work.extend((one != Work::default()).then_some(one));
            at = end;
        }
        work
    }
}

fn kernel(operations: &[Operation], is_read_later: impl Fn(&u64) -> bool) -> Work {
    let single = operations.len() == 1;
    let mut work = Work::default();
    let mut seen = HashSet::new();
    for operation in operations {
        let Operation::Run {
            ir,
            inputs,
            outputs,
        } = operation
        else {
            continue;
        };
        let lies = inputs.first().map(|input| Layout::contiguous(&input.shape));
        let shape = outputs.first().map_or(&[][..], |output| &output.shape);
        let is_view = lies.and_then(|lies| flex::view(ir, &lies, shape)).is_some();
        for input in inputs {
            if seen.insert(input.id) && !is_view {
                work.bytes = work.bytes.saturating_add(input.bytes);
            }
        }
        for output in outputs {
            if seen.insert(output.id) && !is_view && (single || is_read_later(&output.id)) {
                work.bytes = work.bytes.saturating_add(output.bytes);
            }
        }
        let (operations, dtype) = arithmetic(ir);
        let sum = match dtype {
            DType::F16 | DType::BF16 => &mut work.half,
            _ => &mut work.f32,
        };
        *sum = sum.saturating_add(operations);
    }
    work
}

fn arithmetic(ir: &OperationIr) -> (u64, DType) {
    match ir {
        OperationIr::Float(_, FloatOperationIr::Matmul(op)) => {
            let inner = op.lhs.shape.iter().last().copied().unwrap_or(1);
            (twice(&op.out, inner as u64), op.lhs.dtype)
        }
        OperationIr::Module(module) => match module {
            ModuleOperationIr::Conv2d(op) => (convolution(&op.out, &op.weight), op.x.dtype),
            ModuleOperationIr::Conv2dXBackward(op) => {
                let output = &op.output_grad;
                (convolution(output, &op.weight), output.dtype)
            }
            ModuleOperationIr::Conv2dWeightBackward(op) => {
                let output = &op.output_grad;
                (convolution(output, &op.weight), output.dtype)
            }
            _ => (0, DType::F32),
        },
        _ => (0, DType::F32),
    }
}

/// Every value of the output sums over the weights of one filter.
fn convolution(output: &TensorIr, weight: &TensorIr) -> u64 {
    let filters = weight.shape.iter().next().copied().unwrap_or(1).max(1);
    twice(output, elements(weight) / filters as u64)
}

fn twice(output: &TensorIr, terms: u64) -> u64 {
    elements(output).saturating_mul(terms).saturating_mul(2)
}

fn elements(tensor: &TensorIr) -> u64 {
    let dims = tensor.shape.iter();
    dims.fold(1, |product: u64, &dim| product.saturating_mul(dim as u64))
}

#[cfg(test)]
mod tests {
    use super::super::{Kernel, as_one, trace};
    use super::*;
    use burn::tensor::Tensor;
    use burn::tensor::module::conv2d;
    use burn::tensor::ops::ConvOptions;

    #[test]
    fn products_and_convolutions_are_counted() {
        let (recorded, ()) = trace(|device| {
            let _ = Tensor::<2>::ones([3, 4], device).matmul(Tensor::ones([4, 5], device));
            let image = Tensor::<4>::ones([2, 3, 8, 8], device);
            let weight = Tensor::<4>::ones([6, 3, 3, 3], device);
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            let _ = conv2d(image, weight, None, options);
        })
        .unwrap();
        let all = Counter::new(&recorded).work(0..recorded.operations.len());
        let computed: u64 = all.iter().map(Work::arithmetic).sum();
        let expected = 2 * 3 * 4 * 5 + 2 * (2 * 6 * 8 * 8) * (3 * 3 * 3);
        assert_eq!(computed, expected);
        let product = all.iter().find(|work| work.f32 == 120).unwrap();
        assert_eq!(product.bytes, 4 * (12 + 20 + 15));
    }

    #[test]
    fn what_stays_inside_a_kernel_moves_nothing() {
        let moved = |fused: bool| {
            let (recorded, _) = trace(|device| {
                let x = Tensor::<1>::ones([256], device);
                let one = as_one(|| fused.then(|| Kernel::new("exp twice")));
                let y = x.exp().exp();
                drop(one);
                y * 2.0
            })
            .unwrap();
            let all = Counter::new(&recorded).work(0..recorded.operations.len());
            all.iter().map(|work| work.bytes).sum::<u64>()
        };
        assert_eq!(moved(false) - moved(true), 2 * 1024);
    }

    #[test]
    fn a_kernel_waits_for_the_slower() {
        let rates = Rates {
            f32: 10.0,
            half: 100.0,
            bytes: 5.0,
        };
        let of = |f32, half, bytes| Work { f32, half, bytes };
        assert_eq!(rates.seconds(&[of(20, 0, 5), of(0, 20, 5)]), 2.0 + 1.0);
    }
}
