//! Burn promotes no dtypes: an operation must get one float dtype, or its result depends on the backend.

use burn::tensor::DType;
use burn_ir::OperationIr;

use super::operation::name;
use super::{Note, Operation, Trace, TraceError};
use crate::Mark;

/// Refuses a trace in which an operation mixes float dtypes, with the operation and the mark before it.
pub(super) fn check(trace: &Trace) -> Result<(), TraceError> {
    let mut reached = Mark::Start;
    for operation in &trace.operations {
        match operation {
            Operation::Note(Note::Mark(mark, _)) => reached = *mark,
            Operation::Run { ir, inputs, .. } if !matches!(**ir, OperationIr::Custom(_)) => {
                let mut floats: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
                floats.retain(DType::is_float);
                floats.dedup();
                if let [one, other, ..] = floats[..] {
                    return Err(TraceError::MixedDtypes {
                        operation: format!("{} of {one:?} and {other:?}", name(ir)),
                        reached: reached.to_string(),
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}
