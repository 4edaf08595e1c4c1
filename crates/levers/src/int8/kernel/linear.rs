//! A dense layer on levels.

use rayon::prelude::*;

use super::levels::levels;
use super::product::{Bytes, product};
use super::row::row;
use crate::int8::Affine;
use crate::ops::flex::product::Shared;

/// Rows whose codes are held at a time.
const ROWS: usize = 1024;

/// Rows that are multiplied one by one: to pack the weights would cost more.
const FEW: usize = 2;

/// Values that a task quantizes.
const TASK: usize = 1 << 15;

/// `y[r, o] = input.scale * scales[o] * sum_i (level(x[r, i]) - zero_point) * weight[i, o] + bias[o]`.
///
/// `x` is `[rows, inputs]`, `weight` `[inputs, outputs]`, `scales` and `bias` `[outputs]`; the
/// result is `[rows, outputs]`. The sums are exact; each result is rounded in f32 thrice.
///
/// # Panics
/// Where a length doesn't fit the sizes, or `inputs` exceeds [`MAX_DEPTH`](super::MAX_DEPTH).
pub fn linear(
    [rows, inputs, outputs]: [usize; 3],
    x: &[f32],
    input: Affine,
    weight: &[i8],
    scales: &[f32],
    bias: Option<&[f32]>,
) -> Vec<f32> {
    assert_eq!(x.len(), rows * inputs, "x is [rows, inputs]");
    assert_eq!(
        weight.len(),
        inputs * outputs,
        "weight is [inputs, outputs]"
    );
    assert_eq!(scales.len(), outputs, "a scale an output");
    assert!(
        bias.is_none_or(|bias| bias.len() == outputs),
        "a bias an output"
    );
    let mut y = vec![0.0; rows * outputs];
    if y.is_empty() {
        return y;
    }
    let mut codes = vec![0; rows.min(ROWS) * inputs];
    for first in (0..rows).step_by(ROWS) {
        let rows = ROWS.min(rows - first);
        let codes = &mut codes[..rows * inputs];
        quantize(&x[first * inputs..][..rows * inputs], input, codes);
        let codes = &*codes;
        let shared = Shared(y[first * outputs..][..rows * outputs].as_mut_ptr());
        let write = |row: usize, column: usize, sums: &[i32]| {
            let columns = column..column + sums.len();
            // SAFETY: each part of each row is handed out once.
            let y = unsafe { shared.region(row * outputs + column, sums.len()) };
            for ((y, sum), scale) in y.iter_mut().zip(sums).zip(&scales[columns.clone()]) {
                *y = *sum as f32 * (input.scale * scale);
            }
            if let Some(bias) = bias {
                for (y, bias) in y.iter_mut().zip(&bias[columns]) {
                    *y += bias;
                }
            }
        };
        if rows <= FEW {
            for index in 0..rows {
                let codes = &codes[index * inputs..][..inputs];
                let zero_point = i32::from(input.zero_point);
                let left: Vec<i32> = codes
                    .iter()
                    .map(|code| i32::from(*code) - zero_point)
                    .collect();
                row(&left, weight, outputs, |column, sums| {
                    write(index, column, sums)
                });
            }
            continue;
        }
        let left = Bytes {
            row: |row: usize| &codes[row * inputs..][..inputs],
            zero_point: i16::from(input.zero_point),
        };
        let right = Bytes {
            row: |row: usize| &weight[row * outputs..][..outputs],
            zero_point: 0,
        };
        product([rows, outputs, inputs], &left, &right, true, write);
    }
    y
}

fn quantize(values: &[f32], with: Affine, codes: &mut [u8]) {
    if values.len() <= TASK {
        levels(with, values, codes);
        return;
    }
    let tasks = codes.par_chunks_mut(TASK).zip(values.par_chunks(TASK));
    tasks.for_each(|(codes, values)| levels(with, values, codes));
}
