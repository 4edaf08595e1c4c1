//! One read of the tensor, in parallel, with sums in a fixed order.

use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::element::{Element, contiguous, tensor};
use super::rows::{BLOCK, sum};

/// Values that one task sums.
const TASK: usize = 256 * BLOCK;

pub fn sum_of_squares<E: Element>(x: FlexTensor, factor: f32) -> FlexTensor {
    let x = contiguous(x);
    let values: &[E] = x.storage();
    let partial: Vec<f64> = values
        .par_chunks(TASK)
        .map(|values| {
            let mut buffer = [0.0; BLOCK];
            let squares = values.chunks(BLOCK).map(|values| {
                let buffer = &mut buffer[..values.len()];
                E::widen(values, buffer);
                for value in buffer.iter_mut() {
                    let scaled = *value * factor;
                    *value = scaled * scaled;
                }
                sum(buffer)
            });
            squares.sum()
        })
        .collect();
    tensor(vec![partial.iter().sum::<f64>() as f32], [1])
}
