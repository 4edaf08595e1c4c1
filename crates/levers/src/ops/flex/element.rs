//! Storage types and their way to f32 and back.

use burn::tensor::{Element as BurnElement, bf16, f16};
use burn_flex::{FlexTensor, Layout};
use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;

/// A float that tensors are stored in; arithmetic is always f32.
pub trait Element: BurnElement + Pod + Send + Sync {
    /// `target[i] = source[i]` in f32.
    fn widen(source: &[Self], target: &mut [f32]);
    /// `target[i] = source[i]`, rounded to this type.
    fn narrow(source: &[f32], target: &mut [Self]);
    /// The values as f32 without a copy, where they are stored so.
    fn as_f32(values: &[Self]) -> Option<&[f32]> {
        bytemuck::try_cast_slice(values)
            .ok()
            .filter(|_| Self::dtype() == burn::tensor::DType::F32)
    }
}

impl Element for f32 {
    fn widen(source: &[f32], target: &mut [f32]) {
        target.copy_from_slice(source);
    }
    fn narrow(source: &[f32], target: &mut [f32]) {
        target.copy_from_slice(source);
    }
}

macro_rules! half_element {
    ($half:ty) => {
        impl Element for $half {
            fn widen(source: &[$half], target: &mut [f32]) {
                source.convert_to_f32_slice(target);
            }
            fn narrow(source: &[f32], target: &mut [$half]) {
                target.convert_from_f32_slice(source);
            }
        }
    };
}

half_element!(f16);
half_element!(bf16);

/// Runs the expression with `$E` as the element type of the dtype.
macro_rules! by_dtype {
    ($dtype:expr, $E:ident => $body:expr) => {
        match $dtype {
            burn::tensor::DType::F32 => {
                type $E = f32;
                $body
            }
            burn::tensor::DType::F16 => {
                type $E = burn::tensor::f16;
                $body
            }
            burn::tensor::DType::BF16 => {
                type $E = burn::tensor::bf16;
                $body
            }
            other => panic!("the lean operations take f32, f16 and bf16, not {other:?}"),
        }
    };
}
pub(super) use by_dtype;

/// The tensor itself, where it is contiguous; taken by value, so that its storage stays unique.
pub fn contiguous(tensor: FlexTensor) -> FlexTensor {
    tensor.to_contiguous()
}

/// A new contiguous tensor over `values`.
pub fn tensor<E: Element>(values: Vec<E>, shape: impl Into<burn::tensor::Shape>) -> FlexTensor {
    FlexTensor::new(
        burn::tensor::Bytes::from_elems(values),
        Layout::contiguous(shape.into()),
        E::dtype(),
    )
}

/// The values of a contiguous tensor in f32: borrowed where they are stored so.
pub fn f32_values<E: Element>(values: &[E]) -> std::borrow::Cow<'_, [f32]> {
    match E::as_f32(values) {
        Some(values) => values.into(),
        None => {
            let mut widened = vec![0.0; values.len()];
            E::widen(values, &mut widened);
            widened.into()
        }
    }
}
