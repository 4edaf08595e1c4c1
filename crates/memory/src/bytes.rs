//! A size in bytes: checked arithmetic, and the size of a tensor.

mod text;

use std::iter::Sum;

use burn::tensor::{DType, Shape, quantization::quantized_data_len};
use serde::Serialize;
use thiserror::Error;

/// A size in bytes.
///
/// Prints in binary units, always labelled (`512 B`, `43.8 MiB`, `7.31 GiB`). Parses from
/// `8GiB` (2^30), `24GB` and `24G` (10^9), `512MiB` (2^20), `512MB` and `512M` (10^6) and plain
/// `1024`: a unit without its `i` is decimal, bare `K`, `M` and `G` included. Case and spaces
/// don't matter. Serializes as an integer; deserializes from an integer or from such a text.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// Why a size could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BytesError {
    /// The text is not a number with a known unit.
    #[error(
        "`{text}` is not a size: write 8GiB, 512MiB or 64KiB (powers of 1024), \
         24GB or 24G, 512MB or 512M (powers of 1000), or plain bytes such as 1024"
    )]
    Malformed {
        /// What was given.
        text: String,
    },
    /// The text names more bytes than fit in 64 bits.
    #[error("`{text}` is larger than the largest size, 2^64 - 1 bytes: write a smaller size")]
    TooLarge {
        /// What was given.
        text: String,
    },
    /// A tensor of this shape needs more bytes than fit in 64 bits.
    #[error("a {dtype} tensor of shape {shape:?} needs more than 2^64 - 1 bytes: make it smaller")]
    TensorTooLarge {
        /// The shape, outermost dimension first.
        shape: Vec<usize>,
        /// Burn's name of the dtype.
        dtype: &'static str,
    },
}

impl Bytes {
    /// The sum, or `None` where it does not fit in 64 bits.
    pub fn checked_add(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_add(other.0).map(Bytes)
    }

    /// The difference, or `None` where it would be negative.
    pub fn checked_sub(self, other: Bytes) -> Option<Bytes> {
        self.0.checked_sub(other.0).map(Bytes)
    }

    /// `times` as much, or `None` where it does not fit in 64 bits.
    pub fn checked_mul(self, times: u64) -> Option<Bytes> {
        self.0.checked_mul(times).map(Bytes)
    }

    /// The difference, or 0 where it would be negative.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// What a dense tensor of `shape` (outermost dimension first) stores in `dtype`.
    ///
    /// A quantized dtype is counted as Burn lays it out: packed values, then scales.
    ///
    /// # Errors
    ///
    /// [`BytesError::TensorTooLarge`] where the size does not fit in 64 bits.
    pub fn of_elements(shape: &[usize], dtype: DType) -> Result<Bytes, BytesError> {
        let too_large = || BytesError::TensorTooLarge {
            shape: shape.to_vec(),
            dtype: dtype.name(),
        };
        // An empty tensor is empty, however large its other dimensions are.
        if shape.contains(&0) {
            return Ok(Bytes(0));
        }
        let elements = shape
            .iter()
            .try_fold(1u64, |product, &dim| product.checked_mul(dim as u64))
            .ok_or_else(too_large)?;
        let bytes = match dtype {
            // No scheme takes 8 bytes per element, so Burn's unchecked arithmetic can't wrap.
            DType::QFloat(scheme) => elements
                .checked_mul(8)
                .map(|_| quantized_data_len(&scheme, &Shape::from(shape.to_vec())) as u64),
            _ => elements.checked_mul(dtype.size() as u64),
        };
        bytes.map(Bytes).ok_or_else(too_large)
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Self {
        Bytes(bytes)
    }
}

/// Stops at 2^64 - 1 instead of wrapping; use [`Bytes::checked_add`] where that must be noticed.
impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Self {
        sizes.fold(Bytes(0), |total, size| {
            Bytes(total.0.saturating_add(size.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_checked() {
        let most = Bytes(u64::MAX);
        assert_eq!(Bytes(2).checked_add(Bytes(3)), Some(Bytes(5)));
        assert_eq!(most.checked_add(Bytes(1)), None);
        assert_eq!(Bytes(2).checked_sub(Bytes(3)), None);
        assert_eq!(Bytes(2).saturating_sub(Bytes(3)), Bytes(0));
        assert_eq!(Bytes(1 << 32).checked_mul(1 << 32), None);
        assert_eq!([Bytes(1), Bytes(2)].into_iter().sum::<Bytes>(), Bytes(3));
        assert_eq!([most, Bytes(2)].into_iter().sum::<Bytes>(), most);
    }

    // Trap B44: sizes over 4 GiB wrapped in a u32.
    #[test]
    fn a_tensor_over_4_gib_does_not_wrap() {
        let size = Bytes::of_elements(&[(1 << 30) + 1], DType::F32);
        assert_eq!(size, Ok(Bytes((1 << 32) + 4)));
    }

    #[test]
    fn tensor_sizes() {
        assert_eq!(Bytes::of_elements(&[2, 3], DType::F16), Ok(Bytes(12)));
        assert_eq!(Bytes::of_elements(&[], DType::F64), Ok(Bytes(8)));
        assert_eq!(
            Bytes::of_elements(&[usize::MAX, 2, 0], DType::F32),
            Ok(Bytes(0))
        );
        let error = Bytes::of_elements(&[1 << 32, 1 << 31], DType::F32).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("f32 tensor of shape [4294967296, 2147483648]")
        );
    }

    #[test]
    fn a_quantized_tensor_counts_its_scales() {
        use burn::tensor::quantization::QuantScheme;
        let int8 = DType::QFloat(QuantScheme::default());
        let size = Bytes::of_elements(&[64, 64], int8).unwrap();
        assert!(
            size > Bytes(64 * 64) && size < Bytes(64 * 64 + 64),
            "{size:?}"
        );
    }
}
