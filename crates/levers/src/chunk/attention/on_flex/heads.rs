//! Heads of an attention in their tensors, whatever the order of the dimensions in memory.

use std::ops::Range;

use burn_flex::FlexTensor;

use crate::ops::flex::element::Element;
use crate::ops::flex::product::Shared;

/// A `[batch, heads, tokens, width]` view whose last dimension is contiguous.
pub struct View<'a, E> {
    values: &'a [E],
    start: usize,
    strides: [usize; 3],
    pub shape: [usize; 4],
}

impl<'a, E: Element> View<'a, E> {
    pub fn of(tensor: &'a FlexTensor) -> Self {
        let layout = tensor.layout();
        let strides: Vec<usize> = layout.strides().iter().map(|s| *s as usize).collect();
        let shape = [0, 1, 2, 3].map(|dim| layout.shape()[dim]);
        Self {
            values: tensor.storage(),
            start: layout.start_offset(),
            strides: [strides[0], strides[1], strides[2]],
            shape,
        }
    }

    /// Rows of one head, times `factor`.
    pub fn read(
        &self,
        [batch, head]: [usize; 2],
        rows: Range<usize>,
        factor: f32,
        target: &mut [f32],
    ) {
        let width = self.shape[3];
        for (row, target) in rows.zip(target.chunks_mut(width)) {
            let start = self.start + offset([batch, head, row], self.strides);
            E::widen(&self.values[start..start + width], target);
            if factor != 1.0 {
                target.iter_mut().for_each(|value| *value *= factor);
            }
        }
    }

    /// All rows of one head.
    pub fn all(&self, at: [usize; 2]) -> Vec<f32> {
        let [_, _, tokens, width] = self.shape;
        let mut values = vec![0.0; tokens * width];
        self.read(at, 0..tokens, 1.0, &mut values);
        values
    }
}

/// Where rows of an output go.
pub struct Place<E> {
    pub shared: Shared<E>,
    pub start: usize,
    /// Of batch, head and token.
    pub strides: [usize; 3],
    pub width: usize,
}

impl<E: Element> Place<E> {
    /// # Safety
    /// The place lies inside the buffer, and no other task writes this head.
    pub unsafe fn write(&self, [batch, head]: [usize; 2], rows: Range<usize>, values: &[f32]) {
        for (row, values) in rows.zip(values.chunks(self.width)) {
            let start = self.start + offset([batch, head, row], self.strides);
            // SAFETY: as the caller promises.
            E::narrow(values, unsafe { self.shared.region(start, self.width) });
        }
    }
}

fn offset(place: [usize; 3], strides: [usize; 3]) -> usize {
    place
        .iter()
        .zip(strides)
        .map(|(i, stride)| i * stride)
        .sum()
}
