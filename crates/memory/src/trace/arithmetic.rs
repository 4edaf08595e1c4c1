//! How much a traced step computes.

use burn_ir::{FloatOperationIr, ModuleOperationIr, OperationIr, TensorIr};

use super::Operation;

/// Floating-point operations of the matrix products and convolutions among `operations`; a multiplication with
/// its addition counts as two. All else is small beside them.
pub fn arithmetic(operations: &[Operation]) -> u64 {
    let of = |operation: &Operation| match operation {
        Operation::Run { ir, .. } => of(ir),
        Operation::Note(_) => 0,
    };
    operations.iter().map(of).fold(0, u64::saturating_add)
}

fn of(ir: &OperationIr) -> u64 {
    match ir {
        OperationIr::Float(_, FloatOperationIr::Matmul(op)) => {
            let inner = op.lhs.shape.iter().last().copied().unwrap_or(1);
            twice(&op.out, inner as u64)
        }
        OperationIr::Module(module) => match module {
            ModuleOperationIr::Conv2d(op) => convolution(&op.out, &op.weight),
            ModuleOperationIr::Conv2dXBackward(op) => convolution(&op.output_grad, &op.weight),
            ModuleOperationIr::Conv2dWeightBackward(op) => convolution(&op.output_grad, &op.weight),
            _ => 0,
        },
        _ => 0,
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
    use super::super::trace;
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
        let expected = 2 * 3 * 4 * 5 + 2 * (2 * 6 * 8 * 8) * (3 * 3 * 3);
        assert_eq!(arithmetic(&recorded.operations), expected);
    }
}
