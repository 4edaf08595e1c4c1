//! Activations in one pass, in parallel, f32 from and to the storage.

use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::element::{Element, by_dtype, contiguous, tensor};
use super::rows::BLOCK;

/// Values of one task.
const TASK: usize = 64 * BLOCK;

/// `f` of each `N` values that stand at the same place, `M` results each; all tensors in the dtype of the
/// first.
pub fn map<const N: usize, const M: usize>(
    inputs: [FlexTensor; N],
    f: impl Fn([f32; N]) -> [f32; M] + Sync,
) -> [FlexTensor; M] {
    by_dtype!(inputs[0].dtype(), E => map_as::<E, N, M>(inputs, f))
}

fn map_as<E: Element, const N: usize, const M: usize>(
    inputs: [FlexTensor; N],
    f: impl Fn([f32; N]) -> [f32; M] + Sync,
) -> [FlexTensor; M] {
    let inputs = inputs.map(contiguous);
    let shape = inputs[0].layout().shape().clone();
    let values: [&[E]; N] = inputs.each_ref().map(|input| input.storage());
    let mut outputs = [(); M].map(|()| vec![E::zeroed(); values[0].len()]);
    let mut tasks: Vec<[&mut [E]; M]> = Vec::new();
    let mut rest = outputs.each_mut().map(Vec::as_mut_slice);
    while !rest[0].is_empty() {
        let at = rest[0].len().min(TASK);
        let parts = rest.map(|slice| slice.split_at_mut(at));
        let mut ends = [(); M].map(|()| &mut [][..]);
        let mut part = Vec::with_capacity(M);
        for ((head, tail), end) in parts.into_iter().zip(&mut ends) {
            part.push(head);
            *end = tail;
        }
        rest = ends;
        tasks.push(part.try_into().unwrap_or_else(|_| unreachable!("M parts")));
    }
    tasks
        .into_par_iter()
        .enumerate()
        .for_each(|(task, mut outputs)| {
            let mut wide = [[0.0f32; BLOCK]; N];
            let mut results = [[0.0f32; BLOCK]; M];
            let len = outputs[0].len();
            for start in (0..len).step_by(BLOCK) {
                let count = (len - start).min(BLOCK);
                let first = task * TASK + start;
                for (wide, values) in wide.iter_mut().zip(values) {
                    E::widen(&values[first..first + count], &mut wide[..count]);
                }
                for i in 0..count {
                    let result = f(wide.each_ref().map(|wide| wide[i]));
                    for (results, result) in results.iter_mut().zip(result) {
                        results[i] = result;
                    }
                }
                for (output, results) in outputs.iter_mut().zip(&results) {
                    E::narrow(&results[..count], &mut output[start..start + count]);
                }
            }
        });
    outputs.map(|values| tensor(values, shape.clone()))
}
