//! Norms over rows: one read and one write of an activation, f32 between.

use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::element::{Element, contiguous, tensor};
use super::rows::sum;

/// Values of one task.
const TASK: usize = 1 << 14;

fn rows_of_task(width: usize) -> usize {
    (TASK / width.max(1)).max(1)
}

/// `(output, inverse deviation, mean if centred)` of `x` `[rows, width]`; the latter two are `[rows, 1]`, f32.
pub fn forward<E: Element>(
    x: FlexTensor,
    gamma: &FlexTensor,
    beta: Option<&FlexTensor>,
    epsilon: f32,
    centred: bool,
) -> (FlexTensor, FlexTensor, Option<FlexTensor>) {
    let x = contiguous(x);
    let [rows, width] = [0, 1].map(|dim| x.layout().shape()[dim]);
    let values: &[E] = x.storage();
    let gamma: &[f32] = gamma.storage();
    let beta: Option<&[f32]> = beta.map(FlexTensor::storage);
    let mut output = vec![E::zeroed(); rows * width];
    let (mut inverses, mut means) = (vec![0.0f32; rows], vec![0.0f32; rows]);
    let count = rows_of_task(width);
    let tasks = output
        .par_chunks_mut(count * width)
        .zip(values.par_chunks(count * width));
    let statistics = inverses
        .par_chunks_mut(count)
        .zip(means.par_chunks_mut(count));
    tasks
        .zip(statistics)
        .for_each(|((output, values), (inverses, means))| {
            let mut row = vec![0.0; width];
            for (index, values) in values.chunks(width).enumerate() {
                E::widen(values, &mut row);
                if centred {
                    means[index] = (sum(&row) / width as f64) as f32;
                    row.iter_mut().for_each(|value| *value -= means[index]);
                }
                let variance = squares(&row) / width as f32;
                let inverse = 1.0 / (variance + epsilon).sqrt();
                inverses[index] = inverse;
                row.iter_mut()
                    .zip(gamma)
                    .for_each(|(value, gamma)| *value *= inverse * gamma);
                if let Some(beta) = beta {
                    row.iter_mut()
                        .zip(beta)
                        .for_each(|(value, beta)| *value += beta);
                }
                E::narrow(&row, &mut output[index * width..][..width]);
            }
        });
    let column = |values| tensor::<f32>(values, [rows, 1]);
    (
        tensor(output, [rows, width]),
        column(inverses),
        centred.then(|| column(means)),
    )
}

/// Gradients for `x`, in its dtype, and for gamma and beta `[width]`, in f32.
pub fn backward<E: Element>(
    [x, gradient]: [FlexTensor; 2],
    gamma: &FlexTensor,
    inverses: &FlexTensor,
    means: Option<&FlexTensor>,
) -> [FlexTensor; 3] {
    let [x, gradient] = [x, gradient].map(contiguous);
    let [rows, width] = [0, 1].map(|dim| x.layout().shape()[dim]);
    let (values, gradients): (&[E], &[E]) = (x.storage(), gradient.storage());
    let (gamma, inverses): (&[f32], &[f32]) = (gamma.storage(), inverses.storage());
    let means: Option<&[f32]> = means.map(FlexTensor::storage);
    let mut output = vec![E::zeroed(); rows * width];
    let count = rows_of_task(width);
    let tasks = output.par_chunks_mut(count * width).enumerate();
    // Sums of each task, added in order: the same bits whatever the threads do.
    let partial: Vec<[Vec<f32>; 2]> = tasks
        .map(|(task, output)| {
            let mut sums = [vec![0.0; width], vec![0.0; width]];
            let (mut normed, mut grad) = (vec![0.0; width], vec![0.0; width]);
            for (index, output) in output.chunks_mut(width).enumerate() {
                let row = task * count + index;
                E::widen(&values[row * width..][..width], &mut normed);
                E::widen(&gradients[row * width..][..width], &mut grad);
                let (inverse, mean) = (inverses[row], means.map_or(0.0, |means| means[row]));
                normed
                    .iter_mut()
                    .for_each(|value| *value = (*value - mean) * inverse);
                let [for_gamma, for_beta] = &mut sums;
                for i in 0..width {
                    for_gamma[i] += grad[i] * normed[i];
                    for_beta[i] += grad[i];
                    grad[i] *= gamma[i];
                }
                let along = dot(&grad, &normed) / width as f32;
                let middle = match means {
                    Some(_) => (sum(&grad) / width as f64) as f32,
                    None => 0.0,
                };
                for (grad, normed) in grad.iter_mut().zip(&normed) {
                    *grad = (*grad - middle - normed * along) * inverse;
                }
                E::narrow(&grad, output);
            }
            sums
        })
        .collect();
    let total = |index: usize| {
        let mut total = vec![0.0f32; width];
        for sums in &partial {
            total
                .iter_mut()
                .zip(&sums[index])
                .for_each(|(total, value)| *total += value);
        }
        tensor::<f32>(total, [width])
    };
    [tensor(output, [rows, width]), total(0), total(1)]
}

/// Bytes of the sums of [`backward`]'s tasks, for `x` of this shape.
pub fn workspace([rows, width]: [usize; 2]) -> u64 {
    let tasks = rows.div_ceil(rows_of_task(width));
    (4 * 2 * width * tasks) as u64
}

fn squares(row: &[f32]) -> f32 {
    dot(row, row)
}

/// In lanes, which vectorises.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f32 = a
        .remainder()
        .iter()
        .zip(b.remainder())
        .map(|(a, b)| a * b)
        .sum();
    for (a, b) in a.zip(b) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum::<f32>() + rest
}
