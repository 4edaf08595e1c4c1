//! Attention of one head of one sequence a task: scores of a chunk stay in the cache, and all arithmetic is
//! f32 from and to the storage.

use std::ops::Range;

use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::super::{Computation, HIDDEN};
use super::heads::{Place, View};
use crate::chunk::ranges;
use crate::ops::flex::element::{Element, tensor};
use crate::ops::flex::exp::exp;
use crate::ops::flex::product::{Matrix, Shared, multiply};
use crate::ops::flex::rows::sum;

/// A pass with its padding on the host.
pub struct Spec<'a> {
    pub pass: &'a Computation,
    /// `[batch, keys]`, true where a key is padding.
    pub padding: Option<Vec<bool>>,
}

impl Spec<'_> {
    /// Puts `value` wherever a query must not look.
    fn hide(
        &self,
        scores: &mut [f32],
        rows: &Range<usize>,
        columns: &Range<usize>,
        padding: Option<&[bool]>,
        value: f32,
    ) {
        let mask = &self.pass.mask;
        if !mask.causal && padding.is_none() {
            return;
        }
        for (row, scores) in rows.clone().zip(scores.chunks_mut(columns.len())) {
            if mask.causal {
                let seen = row as i64 + mask.offset + 1 - columns.start as i64;
                let seen = seen.clamp(0, columns.len() as i64) as usize;
                scores[seen..].fill(value);
            }
            if let Some(padding) = padding {
                for (score, padded) in scores.iter_mut().zip(&padding[columns.clone()]) {
                    *score = if *padded { value } else { *score };
                }
            }
        }
    }
}

fn contiguous_rows(x: FlexTensor) -> FlexTensor {
    match x.layout().strides()[3] {
        1 => x,
        _ => x.to_contiguous(),
    }
}

/// Output as `[batch, queries, heads, width]`, and the logarithm of each query's sum of exponentials, f32,
/// `[batch, heads, queries, 1]`.
pub fn forward<E: Element>([q, k, v]: [FlexTensor; 3], spec: &Spec) -> (FlexTensor, FlexTensor) {
    let [q, k, v] = [q, k, v].map(contiguous_rows);
    let [queries, keys, values] = [&q, &k, &v].map(View::<E>::of);
    let [batch, heads, rows, width] = queries.shape;
    let mut output = vec![E::zeroed(); batch * rows * heads * width];
    let mut logarithms = vec![0.0f32; batch * heads * rows];
    let place = Place {
        shared: Shared(output.as_mut_ptr()),
        start: 0,
        strides: [rows * heads * width, width, heads * width],
        width,
    };
    let tasks = logarithms.par_chunks_mut(rows).enumerate();
    tasks.for_each(|(task, logarithms)| {
        let at = [task / heads, task % heads];
        Head::new(spec, at, &queries, &keys, &values).forward(logarithms, |rows, values| {
            // SAFETY: each task writes its own head.
            unsafe { place.write(at, rows, values) };
        });
    });
    (
        tensor(output, [batch, rows, heads, width]),
        tensor(logarithms, [batch, heads, rows, 1]),
    )
}

/// Gradients for query, key and value: three tensors `[batch, heads, tokens, width]`, or one `[batch,
/// tokens, 3, heads, width]` where all come from one projection.
pub fn backward<E: Element>(
    [q, k, v]: [FlexTensor; 3],
    [output, gradient]: [FlexTensor; 2],
    logarithms: &FlexTensor,
    spec: &Spec<'_>,
    packed: bool,
) -> Vec<FlexTensor> {
    let all = [q, k, v, output, gradient].map(contiguous_rows);
    let [queries, keys, values, output, gradient] = all.each_ref().map(View::<E>::of);
    let logarithms: &[f32] = logarithms.storage();
    let [batch, heads, rows, width] = queries.shape;
    let columns = keys.shape[2];
    let size = |tokens| batch * heads * tokens * width;
    let mut buffers = match packed {
        true => vec![vec![E::zeroed(); 3 * size(rows)]],
        false => [rows, columns, columns]
            .map(|tokens| vec![E::zeroed(); size(tokens)])
            .into(),
    };
    let places: Vec<Place<E>> = (0..3)
        .map(|index| {
            let tokens = if index == 0 { rows } else { columns };
            let (buffer, start, strides) = match packed {
                true => {
                    let token = 3 * heads * width;
                    (0, index * heads * width, [tokens * token, width, token])
                }
                false => (index, 0, [heads * tokens * width, tokens * width, width]),
            };
            Place {
                shared: Shared(buffers[buffer].as_mut_ptr()),
                start,
                strides,
                width,
            }
        })
        .collect();
    (0..batch * heads).into_par_iter().for_each(|task| {
        let at = [task / heads, task % heads];
        let head = Head::new(spec, at, &queries, &keys, &values);
        let [dq, dk, dv] = head.backward(&output, &gradient, &logarithms[task * rows..][..rows]);
        for (place, values) in places.iter().zip([dq, dk, dv]) {
            // SAFETY: each task writes its own head.
            unsafe { place.write(at, 0..values.len() / width, &values) };
        }
    });
    let shapes = [rows, columns, columns].map(|tokens| vec![batch, heads, tokens, width]);
    match packed {
        true => vec![tensor(
            buffers.remove(0),
            vec![batch, rows, 3, heads, width],
        )],
        false => buffers
            .into_iter()
            .zip(shapes)
            .map(|(buffer, shape)| tensor(buffer, shape))
            .collect(),
    }
}

/// One head of one sequence.
struct Head<'a, E> {
    spec: &'a Spec<'a>,
    at: [usize; 2],
    queries: &'a View<'a, E>,
    keys: Vec<f32>,
    values: Vec<f32>,
    padding: Option<&'a [bool]>,
}

impl<'a, E: Element> Head<'a, E> {
    fn new(
        spec: &'a Spec<'a>,
        at: [usize; 2],
        queries: &'a View<'a, E>,
        keys: &View<E>,
        values: &View<E>,
    ) -> Self {
        let columns = keys.shape[2];
        let padding = spec.padding.as_ref();
        Self {
            spec,
            at,
            queries,
            keys: keys.all(at),
            values: values.all(at),
            padding: padding.map(|padding| &padding[at[0] * columns..][..columns]),
        }
    }

    fn width(&self) -> usize {
        self.queries.shape[3]
    }

    fn scale(&self) -> f32 {
        1.0 / (self.width() as f32).sqrt()
    }

    fn rows(&self) -> impl Iterator<Item = Range<usize>> {
        ranges(self.queries.shape[2], self.spec.pass.chunks.queries)
    }

    fn columns(&self) -> impl Iterator<Item = Range<usize>> {
        ranges(self.keys.len() / self.width(), self.spec.pass.chunks.keys)
    }

    fn matrix<'b>(&self, values: &'b [f32], rows: &Range<usize>) -> Matrix<'b> {
        let width = self.width();
        Matrix::rows_of(&values[rows.start * width..rows.end * width], width)
    }

    /// Scores of a chunk, hidden ones far below all others.
    fn scores(
        &self,
        q: &[f32],
        rows: &Range<usize>,
        columns: &Range<usize>,
        scores: &mut Vec<f32>,
    ) {
        let (r, c) = (rows.len(), columns.len());
        scores.resize(r * c, 0.0);
        let keys = self.matrix(&self.keys, columns).transposed();
        multiply(
            [r, c, self.width()],
            Matrix::rows_of(q, self.width()),
            keys,
            scores,
            c,
            false,
        );
        self.spec.hide(scores, rows, columns, self.padding, HIDDEN);
    }

    fn forward(&self, logarithms: &mut [f32], mut write: impl FnMut(Range<usize>, &[f32])) {
        let width = self.width();
        let mut scores = Vec::new();
        for rows in self.rows() {
            let mut q = vec![0.0; rows.len() * width];
            self.queries
                .read(self.at, rows.clone(), self.scale(), &mut q);
            let mut mean = vec![0.0; rows.len() * width];
            let (mut largest, mut total) = (vec![HIDDEN; rows.len()], vec![0.0f32; rows.len()]);
            for columns in self.columns() {
                if self.spec.pass.mask.hides_all(&rows, &columns) {
                    break;
                }
                self.scores(&q, &rows, &columns, &mut scores);
                for (i, row) in scores.chunks_mut(columns.len()).enumerate() {
                    let larger = maximum(row).max(largest[i]);
                    let shrink = exp(largest[i] - larger);
                    largest[i] = larger;
                    row.iter_mut()
                        .for_each(|score| *score = exp(*score - larger));
                    total[i] *= shrink;
                    mean[i * width..][..width]
                        .iter_mut()
                        .for_each(|value| *value *= shrink);
                }
                self.spec
                    .hide(&mut scores, &rows, &columns, self.padding, 0.0);
                for (total, row) in total.iter_mut().zip(scores.chunks(columns.len())) {
                    *total += sum(row) as f32;
                }
                let weights = Matrix::rows_of(&scores, columns.len());
                let values = self.matrix(&self.values, &columns);
                multiply(
                    [rows.len(), width, columns.len()],
                    weights,
                    values,
                    &mut mean,
                    width,
                    true,
                );
            }
            for (i, mean) in mean.chunks_mut(width).enumerate() {
                // A query that sees nothing has a sum of 0 and a mean of 0.
                let total = if total[i] == 0.0 { 1.0 } else { total[i] };
                mean.iter_mut().for_each(|value| *value /= total);
                logarithms[rows.start + i] = largest[i] + total.ln();
            }
            write(rows, &mean);
        }
    }

    fn backward(&self, output: &View<E>, gradient: &View<E>, logarithms: &[f32]) -> [Vec<f32>; 3] {
        let (width, scale) = (self.width(), self.scale());
        let mut dq = vec![0.0; self.queries.shape[2] * width];
        let (mut dk, mut dv) = (vec![0.0; self.keys.len()], vec![0.0; self.keys.len()]);
        let (mut weights, mut slopes) = (Vec::new(), Vec::new());
        for rows in self.rows() {
            let r = rows.len();
            let [mut q, mut out, mut grad] = [(); 3].map(|()| vec![0.0; r * width]);
            self.queries.read(self.at, rows.clone(), scale, &mut q);
            output.read(self.at, rows.clone(), 1.0, &mut out);
            gradient.read(self.at, rows.clone(), 1.0, &mut grad);
            // What softmax's derivative takes off each row: the gradient's product with the output.
            out.iter_mut()
                .zip(&grad)
                .for_each(|(out, grad)| *out *= grad);
            let products: Vec<f32> = out.chunks(width).map(|row| sum(row) as f32).collect();
            let grads = Matrix::rows_of(&grad, width);
            for columns in self.columns() {
                if self.spec.pass.mask.hides_all(&rows, &columns) {
                    break;
                }
                let c = columns.len();
                self.scores(&q, &rows, &columns, &mut weights);
                for (row, logarithm) in weights.chunks_mut(c).zip(&logarithms[rows.clone()]) {
                    row.iter_mut()
                        .for_each(|score| *score = exp(*score - logarithm));
                }
                self.spec
                    .hide(&mut weights, &rows, &columns, self.padding, 0.0);
                let at = columns.start * width..columns.end * width;
                let matrix = Matrix::rows_of(&weights, c).transposed();
                multiply(
                    [c, width, r],
                    matrix,
                    grads,
                    &mut dv[at.clone()],
                    width,
                    true,
                );

                slopes.resize(r * c, 0.0);
                let values = self.matrix(&self.values, &columns).transposed();
                multiply([r, c, width], grads, values, &mut slopes, c, false);
                let both = slopes.chunks_mut(c).zip(weights.chunks(c)).zip(&products);
                for ((slopes, weights), product) in both {
                    for (slope, weight) in slopes.iter_mut().zip(weights) {
                        *slope = weight * (*slope - product);
                    }
                }
                let matrix = Matrix::rows_of(&slopes, c);
                let queries = Matrix::rows_of(&q, width);
                multiply(
                    [c, width, r],
                    matrix.transposed(),
                    queries,
                    &mut dk[at],
                    width,
                    true,
                );
                let keys = self.matrix(&self.keys, &columns);
                let target = &mut dq[rows.start * width..rows.end * width];
                multiply([r, width, c], matrix, keys, target, width, true);
            }
        }
        dq.iter_mut().for_each(|value| *value *= scale);
        [dq, dk, dv]
    }
}

/// In lanes, which vectorises.
fn maximum(values: &[f32]) -> f32 {
    let mut lanes = [HIDDEN; 8];
    let whole = values.chunks_exact(8);
    let rest = whole.remainder().iter().copied();
    for values in whole {
        for (lane, value) in lanes.iter_mut().zip(values) {
            *lane = if *value > *lane { *value } else { *lane };
        }
    }
    lanes.into_iter().chain(rest).fold(HIDDEN, f32::max)
}
