//! Rows between a tensor and a matrix of columns, many short ones at a time.

use super::element::Element;

/// Values converted at a time; small enough for the stack and the first-level cache.
pub const BLOCK: usize = 256;

/// Writes `source`, rows of `length` one after another, into rows of `width` as f32.
pub fn spread<E: Element>(source: &[E], length: usize, target: &mut [f32], width: usize) {
    let mut buffer = [0.0; BLOCK];
    let group = (BLOCK / length).max(1);
    for (index, source) in source.chunks(group * length).enumerate() {
        let target = &mut target[index * group * width..];
        if source.len() > BLOCK {
            E::widen(source, &mut target[..length]);
            continue;
        }
        let widened = &mut buffer[..source.len()];
        E::widen(source, widened);
        for (row, values) in widened.chunks(length).enumerate() {
            target[row * width..][..length].copy_from_slice(values);
        }
    }
}

/// The reverse: reads rows of `width` and writes them one after another.
pub fn collect<E: Element>(source: &[f32], width: usize, target: &mut [E], length: usize) {
    let mut buffer = [0.0; BLOCK];
    let group = (BLOCK / length).max(1);
    for (index, target) in target.chunks_mut(group * length).enumerate() {
        let source = &source[index * group * width..];
        if target.len() > BLOCK {
            E::narrow(&source[..length], target);
            continue;
        }
        let values = &mut buffer[..target.len()];
        for (row, values) in values.chunks_mut(length).enumerate() {
            values.copy_from_slice(&source[row * width..][..length]);
        }
        E::narrow(values, target);
    }
}

/// In eight lanes, which vectorises and loses less than one running sum.
pub fn sum(values: &[f32]) -> f64 {
    let mut lanes = [0.0f32; 8];
    let whole = values.chunks_exact(8);
    let rest: f32 = whole.remainder().iter().sum();
    for values in whole {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane += value;
        }
    }
    f64::from(lanes.iter().sum::<f32>() + rest)
}
