//! How integers lie in memory. Burn's GPU backends put four of them into a word along an axis of a multiple of
//! four; the CPU takes them as they are.

use burn::tensor::quantization::{QuantScheme, QuantStore, QuantValue, QuantizedBytes, ScaleDtype};
use burn::tensor::{DType, Device, TensorData};

/// Integers in a word.
const IN_A_WORD: usize = 4;

/// Whether a device can hold integers of this shape: see [`pack`].
pub fn packs(shape: &[usize], device: &Device) -> bool {
    axis(shape, device).is_some()
}

/// Integers of shape `shape`, row-major, as data for a device: 8 bits, symmetric, with the one scale 1. `None`
/// where the device packs them and no axis is a multiple of four.
pub fn pack(integers: Vec<i8>, shape: &[usize], device: &Device) -> Option<TensorData> {
    Some(packed_along(axis(shape, device)?, integers, shape))
}

/// The axis of the words.
fn axis(shape: &[usize], device: &Device) -> Option<usize> {
    match super::layers::on_flex(device) {
        true => shape.len().checked_sub(1),
        false => (0..shape.len())
            .rev()
            .find(|axis| shape[*axis].is_multiple_of(IN_A_WORD)),
    }
}

/// The same as files hold it, the same for every device.
pub fn pack_for_file(integers: Vec<i8>, shape: &[usize]) -> TensorData {
    packed_along(shape.len().saturating_sub(1), integers, shape)
}

/// The integers of a packed tensor's data, row-major; `None` for data of another kind.
pub fn unpack(data: TensorData) -> Option<Vec<i8>> {
    let DType::QFloat(scheme) = data.dtype() else {
        return None;
    };
    let (shape, rank) = (data.shape().clone(), data.shape().num_dims());
    let outer = match scheme.store {
        QuantStore::PackedU32(outer) => outer,
        _ => 0,
    };
    let axis = rank.checked_sub(outer + 1)?;
    let mut stored = shape.to_vec();
    stored.swap(axis, rank - 1);
    let packed = QuantizedBytes {
        shape: stored.clone().into(),
        bytes: data.into_bytes(),
        scheme: along(scheme, 0),
    };
    let (integers, _) = packed.into_vec_i8();
    Some(swapped(integers, &stored, axis))
}

fn packed_along(axis: usize, integers: Vec<i8>, shape: &[usize]) -> TensorData {
    let mut integers = swapped(integers, shape, axis);
    // Burn appends the scale, for which a full vector would double.
    integers.reserve_exact(2 * size_of::<f32>());
    let scheme = QuantScheme::default()
        .with_value(QuantValue::Q8S)
        .per_tensor(ScaleDtype::F32);
    let scheme = along(scheme, shape.len() - 1 - axis);
    let mut stored = shape.to_vec();
    stored.swap(axis, shape.len() - 1);
    let data = TensorData::quantized(integers, stored, scheme, &[1.0], None);
    TensorData::from_bytes(data.into_bytes(), shape.to_vec(), DType::QFloat(scheme))
}

/// The scheme with its words along an axis, counted from the last.
fn along(scheme: QuantScheme, outer: usize) -> QuantScheme {
    match scheme.store {
        QuantStore::PackedU32(_) => scheme.with_store(QuantStore::PackedU32(outer)),
        _ => scheme,
    }
}

/// Row-major values with `axis` and the last axis in each other's place.
fn swapped(values: Vec<i8>, shape: &[usize], axis: usize) -> Vec<i8> {
    let last = shape.len() - 1;
    if axis == last {
        return values;
    }
    let (wide, inner) = (shape[last], shape[axis + 1..last].iter().product::<usize>());
    let (tall, count) = (shape[axis], values.len());
    let block = tall * inner * wide;
    let mut turned = Vec::with_capacity(count);
    for start in (0..count).step_by(block.max(1)) {
        for column in 0..wide {
            for middle in 0..inner {
                let first = start + middle * wide + column;
                let rows = values[first..].iter().step_by(inner * wide);
                turned.extend(rows.take(tall));
            }
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_along_any_axis_comes_back() {
        let shape = [4, 8, 3, 5];
        let integers: Vec<i8> = (0..480).map(|i| (i % 251 - 125) as i8).collect();
        for axis in 0..4 {
            let data = packed_along(axis, integers.clone(), &shape);
            assert_eq!(data.shape().to_vec(), shape);
            assert_eq!(unpack(data).unwrap(), integers, "axis {axis}");
        }
        assert_eq!(
            unpack(pack_for_file(integers.clone(), &shape)).unwrap(),
            integers
        );
    }

    #[test]
    fn axes_change_places() {
        let values: Vec<i8> = (0..6).collect();
        assert_eq!(swapped(values.clone(), &[2, 3], 0), [0, 3, 1, 4, 2, 5]);
        assert_eq!(swapped(values, &[2, 1, 3], 1), [0, 1, 2, 3, 4, 5]);
        let values: Vec<i8> = (0..8).collect();
        assert_eq!(swapped(values, &[2, 2, 2], 0), [0, 4, 2, 6, 1, 5, 3, 7]);
    }

    #[test]
    fn a_vector_does_not_double_for_the_scale() {
        let data = pack_for_file(vec![1; 1 << 20], &[1 << 10, 1 << 10]);
        assert_eq!(data.into_bytes().len(), (1 << 20) + 4);
    }
}
