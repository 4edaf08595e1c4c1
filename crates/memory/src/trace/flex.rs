//! What the CPU backend (burn-flex 0.22.1) does with memory for each operation.
//!
//! Views copy nothing; an element-wise operation writes into an operand that nobody else holds; all
//! others make their output, and some need room besides. Each rule names the function it was read from.

use burn::tensor::DType;
use burn_ir::{BaseOperationIr, FloatOperationIr, IntOperationIr, NumericOperationIr, OperationIr};

use super::Use;
use super::gemm;
use super::layout::Layout;
use super::replay::Effect;

/// The effect of `ir` on inputs that lie so.
pub(super) fn effect(
    ir: &OperationIr,
    inputs: &[Use],
    layouts: &[Layout],
    output: &[usize],
) -> Effect {
    use OperationIr as Ir;
    match ir {
        Ir::BaseFloat(base) | Ir::BaseInt(base) | Ir::BaseBool(base) => {
            self::base(base, inputs, layouts, output)
        }
        Ir::NumericFloat(_, operation) | Ir::NumericInt(_, operation) => {
            numeric(operation, inputs.len())
        }
        Ir::Float(_, operation) => float(operation, inputs, output),
        Ir::Int(IntOperationIr::IntoFloat(_)) => Effect::made(),
        Ir::Activation(_) | Ir::Bool(_) | Ir::Int(_) => Effect::in_place(inputs.len()),
        _ => Effect::made(),
    }
}

fn base(base: &BaseOperationIr, inputs: &[Use], layouts: &[Layout], output: &[usize]) -> Effect {
    use BaseOperationIr as Op;
    match base {
        // FlexTensor::reshape
        Op::Reshape(_) => match layouts[0].reshape(output) {
            Some(layout) => Effect::View(layout),
            None => Effect::made(),
        },
        Op::SwapDims(op) => Effect::View(layouts[0].swap(op.dim1, op.dim2)),
        Op::Permute(op) => Effect::View(layouts[0].permute(&op.axes)),
        Op::Expand(_) => Effect::View(layouts[0].expand(output)),
        Op::Slice(op) => Effect::View(layouts[0].slice(&op.ranges, output)),
        // slice_assign_impl, mask_where, mask_fill, scatter_update, select_update
        Op::SliceAssign(_) | Op::MaskFill(_) | Op::Scatter(_) | Op::SelectAssign(_) => {
            Effect::in_place(1)
        }
        Op::MaskWhere(_) => Effect::Made {
            into: vec![0, 2],
            workspace: 0,
        },
        // float_cast returns what is of that dtype already.
        Op::Cast(op) if op.input.dtype == op.out.dtype => Effect::View(layouts[0].clone()),
        // FlexTensor::empty fills a vector of bytes, and copies it to align it.
        Op::Zeros(_) | Op::Empty(_) => Effect::Made {
            into: Vec::new(),
            workspace: output.iter().product::<usize>() as u64 * 4,
        },
        // cat_impl
        Op::Cat(_) if inputs.len() == 1 => Effect::View(layouts[0].clone()),
        _ => Effect::made(),
    }
}

fn numeric(operation: &NumericOperationIr, inputs: usize) -> Effect {
    use NumericOperationIr as Op;
    match operation {
        // binary_op, scalar_op, unary_op
        Op::Add(_)
        | Op::AddScalar(_)
        | Op::Sub(_)
        | Op::SubScalar(_)
        | Op::Div(_)
        | Op::DivScalar(_)
        | Op::Rem(_)
        | Op::RemScalar(_)
        | Op::Mul(_)
        | Op::MulScalar(_)
        | Op::Abs(_)
        | Op::Neg(_)
        | Op::Sign(_)
        | Op::Clamp(_)
        | Op::ClampMin(_)
        | Op::ClampMax(_)
        | Op::Powi(_)
        | Op::PowiScalar(_) => Effect::in_place(inputs),
        _ => Effect::made(),
    }
}

fn float(operation: &FloatOperationIr, inputs: &[Use], output: &[usize]) -> Effect {
    use FloatOperationIr as Op;
    match operation {
        Op::Matmul(op) => {
            let k = op.lhs.shape[op.lhs.shape.num_dims() - 1];
            let [m, n] = [2, 1].map(|from_end| output[output.len() - from_end]);
            let widened = match op.out.dtype {
                // matmul_bf16 widens both sides and narrows the product.
                DType::BF16 => {
                    let product = output.iter().product::<usize>() as u64 * 4;
                    inputs.iter().map(|input| input.bytes * 2).sum::<u64>() + product
                }
                _ => 0,
            };
            Effect::Made {
                into: Vec::new(),
                workspace: widened + 4 * gemm::packed([m, n, k]) as u64,
            }
        }
        Op::Random(_) | Op::IntoInt(_) | Op::IsNan(_) | Op::IsInf(_) | Op::Cross(_) => {
            Effect::made()
        }
        _ => Effect::in_place(inputs.len()),
    }
}
