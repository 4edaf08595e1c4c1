//! Storage types and their way to f32 and back.

use std::borrow::Cow;

use burn::tensor::{Element as BurnElement, bf16, f16};
use burn_flex::{FlexTensor, Layout};
use bytemuck::Pod;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use super::rows::BLOCK;

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

impl Element for f16 {
    fn widen(source: &[f16], target: &mut [f32]) {
        source.convert_to_f32_slice(target);
    }
    fn narrow(source: &[f32], target: &mut [f16]) {
        target.convert_from_f32_slice(source);
    }
}

// Written out, since the conversions of `half` do not vectorise for bf16.
impl Element for bf16 {
    fn widen(source: &[bf16], target: &mut [f32]) {
        for (source, target) in source.iter().zip(target) {
            *target = f32::from_bits(u32::from(source.to_bits()) << 16);
        }
    }
    fn narrow(source: &[f32], target: &mut [bf16]) {
        for (source, target) in source.iter().zip(target) {
            let bits = source.to_bits();
            // To nearest, ties to even; a NaN keeps its sign and stays one.
            let nearest = bits.wrapping_add(0x7FFF + ((bits >> 16) & 1)) >> 16;
            let nan = (bits >> 16) | 0x40;
            let bits = if source.is_nan() { nan } else { nearest };
            *target = bf16::from_bits(bits as u16);
        }
    }
}

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
pub(crate) use by_dtype;

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

/// A contiguous weight, stored in f32 or in `E`, as f32 values that `E` can represent.
pub fn rounded<E: Element>(weight: &FlexTensor) -> Cow<'_, [f32]> {
    if weight.dtype() == E::dtype() {
        let values: &[E] = weight.storage();
        if let Some(values) = E::as_f32(values) {
            return values.into();
        }
        let mut widened = vec![0.0; values.len()];
        E::widen(values, &mut widened);
        return widened.into();
    }
    let values: &[f32] = weight.storage();
    let mut rounded = vec![0.0; values.len()];
    let blocks = rounded.par_chunks_mut(BLOCK).zip(values.par_chunks(BLOCK));
    blocks.with_min_len(64).for_each(|(rounded, values)| {
        let mut stored = [E::zeroed(); BLOCK];
        let stored = &mut stored[..values.len()];
        E::narrow(values, stored);
        E::widen(stored, rounded);
    });
    rounded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_rounds_as_half_does() {
        let mut values: Vec<f32> = (0..20_000u32)
            .map(|i| f32::from_bits(i.wrapping_mul(214_013) << 3))
            .collect();
        values.extend([
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::MAX,
            1.0 + 1.0 / 256.0,
        ]);
        let mut rounded = vec![bf16::ZERO; values.len()];
        bf16::narrow(&values, &mut rounded);
        for (value, rounded) in values.iter().zip(&rounded) {
            let expected = bf16::from_f32(*value);
            assert_eq!(rounded.to_bits(), expected.to_bits(), "{value}");
        }
        let mut back = vec![0.0; values.len()];
        bf16::widen(&rounded, &mut back);
        assert!(
            back.iter()
                .zip(&rounded)
                .all(|(back, half)| back.to_bits() == half.to_f32().to_bits())
        );
    }
}
