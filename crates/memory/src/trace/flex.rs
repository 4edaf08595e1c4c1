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

/// How an operation that copies nothing sees its first input, which lies so; `None` for all others.
pub(super) fn view(ir: &OperationIr, input: &Layout, output: &[usize]) -> Option<Layout> {
    use BaseOperationIr as Op;
    let (OperationIr::BaseFloat(base) | OperationIr::BaseInt(base) | OperationIr::BaseBool(base)) =
        ir
    else {
        return None;
    };
    match base {
        // FlexTensor::reshape
        Op::Reshape(_) => input.reshape(output),
        Op::SwapDims(op) => Some(input.swap(op.dim1, op.dim2)),
        Op::Permute(op) => Some(input.permute(&op.axes)),
        Op::Expand(_) => Some(input.expand(output)),
        Op::Slice(op) => Some(input.slice(&op.ranges, output)),
        // float_cast returns what is of that dtype already.
        Op::Cast(op) if op.input.dtype == op.out.dtype => Some(input.clone()),
        // cat
        Op::Cat(op) if op.tensors.len() == 1 => Some(input.clone()),
        _ => None,
    }
}

/// The effect of `ir` on inputs that lie so.
pub(super) fn effect(
    ir: &OperationIr,
    inputs: &[Use],
    layouts: &[Layout],
    output: &[usize],
) -> Effect {
    use OperationIr as Ir;
    let view = layouts.first().and_then(|input| view(ir, input, output));
    if let Some(layout) = view {
        return Effect::View(layout);
    }
    match ir {
        Ir::BaseFloat(base) | Ir::BaseInt(base) | Ir::BaseBool(base) => self::base(base, output),
        Ir::NumericFloat(_, operation) | Ir::NumericInt(_, operation) => {
            numeric(operation, inputs.len())
        }
        Ir::Float(_, operation) => float(operation, inputs, layouts, output),
        Ir::Int(IntOperationIr::IntoFloat(_)) => Effect::made(),
        Ir::Activation(_) | Ir::Bool(_) | Ir::Int(_) => Effect::in_place(inputs.len()),
        _ => Effect::made(),
    }
}

fn base(base: &BaseOperationIr, output: &[usize]) -> Effect {
    use BaseOperationIr as Op;
    match base {
        // slice_assign_impl, mask_fill, scatter_update, select_update
        Op::SliceAssign(_) | Op::MaskFill(_) | Op::Scatter(_) | Op::SelectAssign(_) => {
            Effect::in_place(1)
        }
        // mask_where
        Op::MaskWhere(_) => Effect::Made {
            into: vec![0, 2],
            workspace: 0,
        },
        // FlexTensor::empty fills a vector of bytes, and copies it to align it.
        Op::Zeros(op) | Op::Empty(op) => Effect::Made {
            into: Vec::new(),
            workspace: (output.iter().product::<usize>() * op.out.dtype.size()) as u64,
        },
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

fn float(
    operation: &FloatOperationIr,
    inputs: &[Use],
    layouts: &[Layout],
    output: &[usize],
) -> Effect {
    use FloatOperationIr as Op;
    match operation {
        Op::Matmul(op) => {
            let k = op.lhs.shape[op.lhs.shape.num_dims() - 1];
            let [m, n] = [2, 1].map(|from_end| output[output.len() - from_end]);
            let in_rows = |side: usize| layouts[side].is_in_rows();
            let floats = match op.out.dtype {
                DType::F16 => gemm::packed_f16([m, n, k], in_rows(1)),
                DType::BF16 => gemm::packed([m, n, k], [true; 2]),
                _ => gemm::packed([m, n, k], [0, 1].map(in_rows)),
            };
            let packed = 4 * floats as u64;
            // FlexTensor::empty holds what it makes twice for a moment, as for zeros.
            let elements = output.iter().product::<usize>() as u64;
            let workspace = match op.out.dtype {
                // matmul_bf16 copies both sides where they are not contiguous, widens them, and narrows the
                // product when they are gone.
                DType::BF16 => {
                    let (wide, narrow) = (4 * elements, 2 * elements);
                    let copied = inputs
                        .iter()
                        .zip(layouts)
                        .filter(|(_, at)| !at.is_contiguous());
                    let copied: u64 = copied.map(|(input, _)| input.bytes).sum();
                    let sides: u64 = inputs.iter().map(|input| 2 * input.bytes).sum();
                    (copied + sides + wide + packed.max(wide) - narrow).max(wide)
                }
                dtype => packed.max(elements * dtype.size() as u64),
            };
            let product = Effect::Made {
                into: Vec::new(),
                workspace,
            };
            match gemm::uses_buffer([m, n, k], layouts[1].is_in_rows()) {
                true => Effect::Buffered(Box::new(product)),
                false => product,
            }
        }
        Op::Random(_) | Op::IntoInt(_) | Op::IsNan(_) | Op::IsInf(_) | Op::Cross(_) => {
            Effect::made()
        }
        _ => Effect::in_place(inputs.len()),
    }
}
