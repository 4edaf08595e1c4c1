//! Cross-entropy behind a large head, without logits of tokens x vocabulary.
//!
//! Logits exist for one chunk of tokens at a time, and become loss and gradient at once; as in
//! Liger Kernel (Hsu et al. 2024, <https://arxiv.org/abs/2410.10989>, section 3.2).

use std::ops::Range;
use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{Bool, DType, FloatDType, IndexingUpdateOp, Int, Tensor};

use super::ranges;
use crate::ops::{InputGradients, LeanOps, Made, Rule};

/// Cross-entropy of `hidden weightᵀ` against target classes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossEntropy {
    /// Tokens whose logits exist at once; 0 takes all, `None` as many as make 8 MiB of logits.
    pub chunk: Option<usize>,
    /// Targets of this value do not count.
    pub ignore: i64,
    /// Weight of the uniform distribution in the target, as in PyTorch: 0 to below 1.
    pub smoothing: f64,
}

impl Default for CrossEntropy {
    fn default() -> Self {
        Self {
            chunk: None,
            ignore: -100,
            smoothing: 0.0,
        }
    }
}

impl CrossEntropy {
    /// Tokens of a chunk for a vocabulary; 0 is all.
    pub fn chunk_of(&self, vocabulary: usize) -> usize {
        const LOGITS: usize = 1 << 21;
        self.chunk.unwrap_or((LOGITS / vocabulary.max(1)).max(16))
    }

    /// The sum over counted tokens, `[1]` in f32.
    ///
    /// `hidden` is `[tokens, width]`, `weight` `[vocabulary, width]` (a tied embedding as it is stored),
    /// `targets` `[tokens]`. The weight may be stored wider than `hidden`: it is cast inside. Softmax
    /// and loss are f32.
    ///
    /// # Panics
    ///
    /// Where the shapes do not fit together.
    pub fn sum(&self, hidden: Tensor<2>, weight: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        let [tokens, width] = hidden.dims();
        assert_eq!(
            weight.dims()[1],
            width,
            "cross-entropy: weight is [vocabulary, width]"
        );
        assert_eq!(
            targets.dims(),
            [tokens],
            "cross-entropy: a target for each token"
        );
        let rule = Head {
            loss: *self,
            targets: targets.inner(),
        };
        Tensor::from_dispatch(Dispatch::lean_rule_2(
            hidden.into_dispatch(),
            weight.into_dispatch(),
            Arc::new(rule),
        ))
    }

    /// The mean over counted tokens, 0 where none counts.
    ///
    /// Means of micro-batches must not be averaged as they are: weigh them by their counted tokens.
    pub fn mean(&self, hidden: Tensor<2>, weight: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<1> {
        let counted = targets.clone().not_equal_elem(self.ignore).int().sum();
        let counted = counted.clamp_min(1).float().cast(FloatDType::F32);
        self.sum(hidden, weight, targets) / counted
    }
}

#[derive(Clone, Debug)]
struct Head {
    loss: CrossEntropy,
    targets: Tensor<1, Int>,
}

/// One chunk's part in the loss, and the gradient for its logits if wanted, `[chunk, vocabulary]` in f32.
struct Chunk {
    loss: Tensor<1>,
    gradient: Option<Tensor<2>>,
}

impl Head {
    fn chunk(&self, logits: Tensor<2>, rows: &Range<usize>, wanted: bool) -> Chunk {
        let [_, vocabulary] = logits.dims();
        let targets = self
            .targets
            .clone()
            .slice([rows.clone()])
            .reshape([rows.len(), 1]);
        let ignored: Tensor<2, Bool> = targets.clone().equal_elem(self.loss.ignore);
        let targets = targets.mask_fill(ignored.clone(), 0);
        let smoothing = self.loss.smoothing;

        let picked = logits
            .clone()
            .gather(1, targets.clone())
            .mul_scalar(1.0 - smoothing);
        let picked = match smoothing > 0.0 {
            true => picked + logits.clone().mean_dim(1).mul_scalar(smoothing),
            false => picked,
        };
        let largest = logits.clone().max_dim(1);
        let exponentials = (logits - largest.clone()).exp();
        let sum = exponentials.clone().sum_dim(1);
        let losses = largest + sum.clone().log() - picked;
        let loss = losses.mask_fill(ignored.clone(), 0.0).sum();

        let gradient = wanted.then(|| {
            // Rows that do not count get a weight of 0.
            let counted = ignored.bool_not().float().cast(FloatDType::F32);
            let mut gradient = exponentials * (counted.clone() / sum);
            if smoothing > 0.0 {
                gradient = gradient - counted.clone().mul_scalar(smoothing / vocabulary as f64);
            }
            let right = counted.mul_scalar(smoothing - 1.0);
            gradient.scatter(1, targets, right, IndexingUpdateOp::Add)
        });
        Chunk { loss, gradient }
    }
}

impl Rule for Head {
    /// Gradients are made in the forward.
    fn keeps(&self) -> &'static [bool] {
        &[false; 2]
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, wanted: &[bool]) -> Made {
        let inputs: [_; 2] = inputs.try_into().expect("hidden and weight");
        let [hidden, stored] = inputs.map(Tensor::<2>::from_dispatch);
        let ([tokens, width], [vocabulary, _]) = (hidden.dims(), stored.dims());
        let device = hidden.device();
        let half = FloatDType::from(hidden.dtype());
        let weight = stored.clone().cast(half);
        // Flex holds `zeros` twice for a moment, `full` once.
        let zeros = |rows, dtype| Tensor::<2>::full([rows, width], 0.0, (&device, dtype));
        let [wants_hidden, wants_weight] = [wanted[0], wanted[1]];
        let mut hidden_grad = wants_hidden.then(|| zeros(tokens, hidden.dtype()));
        let mut weight_grad = wants_weight.then(|| zeros(vocabulary, DType::F32));
        let mut loss = Tensor::<1>::zeros([1], (&device, DType::F32));
        for rows in ranges(tokens, self.loss.chunk_of(vocabulary)) {
            let inputs = hidden.clone().slice([rows.clone(), 0..width]);
            let logits = inputs.clone().matmul(weight.clone().transpose());
            let logits = logits.cast(FloatDType::F32);
            let chunk = self.chunk(logits, &rows, wants_hidden || wants_weight);
            loss = loss + chunk.loss;
            let Some(gradient) = chunk.gradient.map(|gradient| gradient.cast(half)) else {
                continue;
            };
            hidden_grad = hidden_grad.map(|sum| {
                sum.slice_assign([rows, 0..width], gradient.clone().matmul(weight.clone()))
            });
            weight_grad = weight_grad.map(|sum| add_product(sum, gradient, inputs));
        }
        let stored = FloatDType::from(stored.dtype());
        let kept = [
            hidden_grad,
            weight_grad.map(|gradient| gradient.cast(stored)),
        ];
        let kept = kept.into_iter().flatten().map(Tensor::into_dispatch);
        (loss.into_dispatch(), kept.collect())
    }

    fn backward(
        &self,
        _inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        wanted: &[bool],
    ) -> InputGradients {
        let gradient = Tensor::<1>::from_dispatch(gradient);
        let mut kept = kept.into_iter();
        let mut next = |wanted: &bool| {
            let made = wanted.then(|| kept.next()).flatten()?;
            Some(scaled(Tensor::from_dispatch(made), &gradient).into_dispatch())
        };
        wanted.iter().map(&mut next).collect()
    }
}

/// `x * factor` in the memory of `x`.
fn scaled(mut x: Tensor<2>, factor: &Tensor<1>) -> Tensor<2> {
    let [rows, width] = x.dims();
    let factor = factor.clone().cast(FloatDType::from(x.dtype()));
    for rows in ranges(rows, ROWS) {
        let at = [rows, 0..width];
        let part = x.clone().slice(at.clone()) * factor.clone().unsqueeze();
        x = x.slice_assign(at, part);
    }
    x
}

/// Rows that are written at a time: what is computed for them is a temporary of this size.
const ROWS: usize = 8192;

/// `sum + gradientᵀ inputs`, `[vocabulary, width]` in f32.
fn add_product(mut sum: Tensor<2>, gradient: Tensor<2>, inputs: Tensor<2>) -> Tensor<2> {
    let [vocabulary, width] = sum.dims();
    let [tokens, _] = gradient.dims();
    for rows in ranges(vocabulary, ROWS) {
        let part = gradient
            .clone()
            .slice([0..tokens, rows.clone()])
            .transpose();
        let product = part.matmul(inputs.clone()).cast(FloatDType::F32);
        let at = [rows, 0..width];
        let before = sum.clone().slice(at.clone());
        sum = sum.slice_assign(at, before + product);
    }
    sum
}
