//! Burn's recorded operation, with what its memory depends on taken out.

use burn::tensor::DType;
use burn_ir::{OperationIr, TensorIr, TensorStatus};

use super::Note;

/// A tensor that an operation touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The tensor.
    pub id: u64,
    /// Its size.
    pub bytes: u64,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its dtype.
    pub dtype: DType,
    /// Whether the operation took the last handle of it.
    pub last: bool,
}

/// One entry of a trace.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Not of the device.
    Note(Note),
    /// An operation of the device.
    Run {
        /// As recorded.
        ir: Box<OperationIr>,
        /// What it reads.
        inputs: Vec<Use>,
        /// What it makes.
        outputs: Vec<Use>,
    },
}

impl Operation {
    pub(super) fn of(ir: OperationIr) -> Self {
        Self::Run {
            inputs: ir.inputs().map(Use::of).collect(),
            outputs: ir.outputs().map(Use::of).collect(),
            ir: Box::new(ir),
        }
    }
}

impl Use {
    fn of(tensor: &TensorIr) -> Self {
        let elements = tensor
            .shape
            .iter()
            .fold(1u64, |product, &dim| product.saturating_mul(dim as u64));
        Self {
            id: tensor.id.value(),
            bytes: elements.saturating_mul(tensor.dtype.size() as u64),
            shape: tensor.shape.iter().copied().collect(),
            dtype: tensor.dtype,
            last: tensor.status == TensorStatus::ReadWrite,
        }
    }
}

/// Burn's name of an operation in lower case, such as `matmul`.
pub(super) fn name(ir: &OperationIr) -> String {
    // `Kind(Name(..))`, or `Kind(dtype, Name(..))`.
    let text = format!("{ir:?}");
    let inner = text.split_once('(').map_or("", |(_, inner)| inner);
    let head = inner.split('(').next().unwrap_or_default();
    let name = head.rsplit([' ', ',']).next().unwrap_or_default();
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}
