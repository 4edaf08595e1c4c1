//! Exact attention without a tensor of queries x keys.
//!
//! Queries and keys are taken in chunks with a running maximum and sum (Rabe and Staats 2021,
//! <https://arxiv.org/abs/2112.05682>); the backward computes each chunk's weights again from the
//! logarithm of the sums (Dao et al. 2022, <https://arxiv.org/abs/2205.14135>, algorithm 4).

#[cfg(feature = "flex")]
mod on_flex;
mod rules;

use std::ops::Range;
use std::sync::Arc;

#[cfg(feature = "flex")]
use burn::backend::DispatchTensorKind;
use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{Bool, DType, FloatDType, Tensor};
use leanburn_memory::trace::Kernel;

use super::mask::Mask;
use super::ranges;
use crate::ops::{LeanOps, Pass};
use rules::{Packed, Separate};

/// The score of a hidden key: far below any other, and no infinity to subtract from another.
const HIDDEN: f32 = -1e30;

/// Scaled dot-product attention, `softmax(q kᵀ / sqrt(d)) v`, in chunks.
///
/// Softmax and sums are f32 in every precision. A query that sees no key gets zeros, and finite
/// gradients. The largest temporary is `[batch, heads, queries, keys]` with the chunk sizes given here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// A query sees only keys up to its own position; the last query stands at the last key.
    pub causal: bool,
    /// Queries in a chunk; 0 takes all at once.
    pub queries: usize,
    /// Keys in a chunk; 0 takes all at once.
    pub keys: usize,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            causal: false,
            queries: 256,
            keys: 256,
        }
    }
}

impl Attention {
    /// With causal order.
    pub fn causal() -> Self {
        Self {
            causal: true,
            ..Self::default()
        }
    }

    /// With chunks of `size` queries and keys; 0 takes all at once.
    pub fn with_chunk(mut self, size: usize) -> Self {
        (self.queries, self.keys) = (size, size);
        self
    }

    /// Attention of `query` `[batch, heads, queries, width]` on `key` and `value`
    /// `[batch, heads, keys, width]`, in their dtype; `[batch, heads, queries, width]`.
    ///
    /// `padding` `[batch, keys]` is true where a key is padding, as in Burn.
    ///
    /// # Panics
    ///
    /// Where the shapes do not fit together.
    pub fn forward(
        &self,
        query: Tensor<4>,
        key: Tensor<4>,
        value: Tensor<4>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<4> {
        let [batch, heads, queries, width] = query.dims();
        let [_, _, keys, _] = key.dims();
        assert_eq!(key.dims(), [batch, heads, keys, width], "attention: key");
        assert_eq!(value.dims(), key.dims(), "attention: value");
        let dtypes = [key.dtype(), value.dtype()];
        assert!(dtypes == [query.dtype(); 2], "attention: dtypes {dtypes:?}");
        let rule = Separate(self.pass(queries, keys, padding, batch));
        Tensor::from_dispatch(Dispatch::lean_rule_3(
            query.into_dispatch(),
            key.into_dispatch(),
            value.into_dispatch(),
            Arc::new(rule),
        ))
    }

    /// Self-attention on the output of one projection, `[batch, tokens, 3 * heads * width]`: queries,
    /// keys and values one after another, as GPT-2's `c_attn` makes them; `[batch, tokens, heads *
    /// width]`. The gradient comes in one piece too.
    ///
    /// # Panics
    ///
    /// Where the last dimension is no multiple of `3 * heads`.
    pub fn packed(
        &self,
        qkv: Tensor<3>,
        heads: usize,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<3> {
        let [batch, tokens, width] = qkv.dims();
        let multiple = heads > 0 && width.is_multiple_of(3 * heads);
        assert!(
            multiple,
            "attention: width {width} is not 3 x {heads} heads"
        );
        let rule = Packed {
            pass: self.pass(tokens, tokens, padding, batch),
            heads,
        };
        Tensor::from_dispatch(Dispatch::lean_rule_1(qkv.into_dispatch(), Arc::new(rule)))
    }

    fn pass(
        &self,
        queries: usize,
        keys: usize,
        padding: Option<Tensor<2, Bool>>,
        batch: usize,
    ) -> Computation {
        if let Some(padding) = &padding {
            assert_eq!(
                padding.dims(),
                [batch, keys],
                "attention: padding is [batch, keys]"
            );
        }
        Computation {
            chunks: *self,
            mask: Mask {
                causal: self.causal,
                padding: padding.map(Tensor::inner),
                offset: keys as i64 - queries as i64,
            },
        }
    }
}

/// The computation, on tensors without a graph.
#[derive(Clone, Debug)]
struct Computation {
    chunks: Attention,
    mask: Mask,
}

impl Computation {
    /// Output as `[batch, queries, heads, width]`, and the logarithm of each query's sum of exponentials,
    /// `[batch, heads, queries, 1]`.
    fn forward(&self, inputs: [Tensor<4>; 3]) -> (Tensor<4>, Tensor<4>) {
        #[cfg(feature = "flex")]
        if let Some(result) = on_flex::forward(self, &inputs) {
            return result;
        }
        self.forward_by_parts(inputs)
    }

    /// What the CPU's kernel needs for queries and keys of these shapes.
    fn kernel(&self, shapes: [[usize; 4]; 2], pass: Pass) -> Kernel {
        #[cfg(feature = "flex")]
        let workspace = on_flex::workspace(self, shapes, pass);
        #[cfg(not(feature = "flex"))]
        let (workspace, _) = (0, (shapes, pass));
        Kernel {
            workspace,
            ..Kernel::new("attention")
        }
    }

    /// For any backend.
    fn forward_by_parts(&self, [query, key, value]: [Tensor<4>; 3]) -> (Tensor<4>, Tensor<4>) {
        let [batch, heads, queries, width] = query.dims();
        let [_, _, keys, _] = key.dims();
        let (device, dtype) = (query.device(), FloatDType::from(query.dtype()));
        let mut output = Tensor::zeros([batch, queries, heads, width], (&device, query.dtype()));
        let mut logarithms = Vec::new();
        for rows in ranges(queries, self.chunks.queries) {
            let q = self.scaled(&query, &rows);
            let column = [batch, heads, rows.len(), 1];
            let mut largest = Tensor::<4>::full(column, HIDDEN, (&device, DType::F32));
            let mut sum = Tensor::<4>::zeros(column, (&device, DType::F32));
            let mut mean =
                Tensor::<4>::zeros([batch, heads, rows.len(), width], (&device, DType::F32));
            for columns in ranges(keys, self.chunks.keys) {
                if self.mask.hides_all(&rows, &columns) {
                    break;
                }
                let k = part(&key, &columns);
                let hidden = self.mask.hidden(&rows, &columns, [batch, heads], &device);
                let scores = scores(&q, k, hidden.as_ref());
                let larger = largest.clone().max_pair(scores.clone().max_dim(3));
                let weights = visible((scores - larger.clone()).exp(), hidden);
                let shrink = (largest - larger.clone()).exp();
                largest = larger;
                sum = sum * shrink.clone() + weights.clone().sum_dim(3);
                let v = part(&value, &columns);
                let weighted = weights.cast(v.dtype()).matmul(v).cast(FloatDType::F32);
                mean = mean * shrink + weighted;
            }
            // A query that sees nothing has a sum of 0 and a mean of 0.
            let sum = sum.clone().mask_fill(sum.equal_elem(0.0), 1.0);
            let rows_out = (mean / sum.clone()).cast(dtype).swap_dims(1, 2);
            output = output.slice_assign([0..batch, rows, 0..heads, 0..width], rows_out);
            logarithms.push(largest + sum.log());
        }
        (output, Tensor::cat(logarithms, 2))
    }

    /// Gradients for query, key and value, each `[batch, heads, tokens, width]`; or with `packed` all in one,
    /// `[batch, tokens, 3 * heads * width]`.
    fn backward(
        &self,
        inputs: [Tensor<4>; 3],
        output: Tensor<4>,
        logarithms: Tensor<4>,
        gradient: Tensor<4>,
        packed: bool,
    ) -> Vec<DispatchTensor> {
        #[cfg(feature = "flex")]
        if is_flex(&gradient) {
            return on_flex::backward(self, inputs, [output, gradient], logarithms, packed);
        }
        let gradients = self.backward_by_parts(inputs, output, logarithms, gradient);
        match packed {
            false => gradients.map(Tensor::into_dispatch).into(),
            true => {
                let parts = gradients.map(|grad| grad.swap_dims(1, 2).flatten::<3>(2, 3));
                vec![Tensor::cat(parts.into(), 2).into_dispatch()]
            }
        }
    }

    /// For any backend.
    fn backward_by_parts(
        &self,
        [query, key, value]: [Tensor<4>; 3],
        output: Tensor<4>,
        logarithms: Tensor<4>,
        gradient: Tensor<4>,
    ) -> [Tensor<4>; 3] {
        let [batch, heads, queries, width] = query.dims();
        let [_, _, keys, _] = key.dims();
        let device = query.device();
        let f32_zeros = |len| Tensor::<4>::zeros([batch, heads, len, width], (&device, DType::F32));
        let mut query_grad = f32_zeros(queries);
        let mut key_grad = Tensor::zeros([batch, heads, keys, width], (&device, key.dtype()));
        let mut value_grad = Tensor::zeros([batch, heads, keys, width], (&device, value.dtype()));
        let all = |rows: &Range<usize>| [0..batch, 0..heads, rows.clone(), 0..width];
        // What softmax's derivative takes off each row: the gradient's product with the output.
        let product = gradient.clone().cast(FloatDType::F32) * output.cast(FloatDType::F32);
        let row_products = product.sum_dim(3);
        let scale = 1.0 / (width as f64).sqrt();
        for columns in ranges(keys, self.chunks.keys) {
            let (k, v) = (part(&key, &columns), part(&value, &columns));
            let (mut dk, mut dv) = (f32_zeros(columns.len()), f32_zeros(columns.len()));
            for rows in ranges(queries, self.chunks.queries) {
                if self.mask.hides_all(&rows, &columns) {
                    continue;
                }
                let column =
                    |x: &Tensor<4>| x.clone().slice([0..batch, 0..heads, rows.clone(), 0..1]);
                let q = self.scaled(&query, &rows);
                let hidden = self.mask.hidden(&rows, &columns, [batch, heads], &device);
                let scores = scores(&q, k.clone(), hidden.as_ref());
                let weights = visible((scores - column(&logarithms)).exp(), hidden);
                let grad = part(&gradient, &rows);
                let half = FloatDType::from(grad.dtype());
                dv = dv
                    + transposed(weights.clone().cast(half))
                        .matmul(grad.clone())
                        .cast(FloatDType::F32);
                let grad = grad.matmul(v.clone().transpose()).cast(FloatDType::F32);
                let grad = (weights * (grad - column(&row_products))).cast(half);
                dk = dk + transposed(grad.clone()).matmul(q).cast(FloatDType::F32);
                let dq = grad
                    .matmul(k.clone())
                    .cast(FloatDType::F32)
                    .mul_scalar(scale);
                let before = query_grad.clone().slice(all(&rows));
                query_grad = query_grad.slice_assign(all(&rows), before + dq);
            }
            key_grad = key_grad.slice_assign(all(&columns), dk.cast(key.dtype()));
            value_grad = value_grad.slice_assign(all(&columns), dv.cast(value.dtype()));
        }
        [query_grad.cast(query.dtype()), key_grad, value_grad]
    }

    /// Queries of a chunk over `sqrt(width)`: scaled first, so that a product in f16 does not overflow.
    fn scaled(&self, query: &Tensor<4>, rows: &Range<usize>) -> Tensor<4> {
        let [_, _, _, width] = query.dims();
        part(query, rows).mul_scalar(1.0 / (width as f64).sqrt())
    }
}

/// Tokens of a chunk, `[batch, heads, tokens, width]`.
fn part(x: &Tensor<4>, rows: &Range<usize>) -> Tensor<4> {
    let [batch, heads, _, width] = x.dims();
    x.clone()
        .slice([0..batch, 0..heads, rows.clone(), 0..width])
}

fn transposed(x: Tensor<4>) -> Tensor<4> {
    x.swap_dims(2, 3)
}

/// Scores `[batch, heads, queries, keys]` in f32.
fn scores(scaled_query: &Tensor<4>, key: Tensor<4>, hidden: Option<&Tensor<4, Bool>>) -> Tensor<4> {
    let scores = scaled_query
        .clone()
        .matmul(transposed(key))
        .cast(FloatDType::F32);
    match hidden {
        Some(hidden) => scores.mask_fill(hidden.clone(), HIDDEN),
        None => scores,
    }
}

/// Weights with exact zeros for hidden keys, also where a query sees none.
fn visible(weights: Tensor<4>, hidden: Option<Tensor<4, Bool>>) -> Tensor<4> {
    match hidden {
        Some(hidden) => weights.mask_fill(hidden, 0.0),
        None => weights,
    }
}

#[cfg(feature = "flex")]
fn is_flex(x: &Tensor<4>) -> bool {
    matches!(x.clone().into_dispatch().kind, DispatchTensorKind::Flex(_))
}
