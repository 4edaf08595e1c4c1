//! Linear layers and embeddings as GPT-2, BERT and Llama initialise them.

use burn::module::Initializer;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Tensor};

/// Standard deviation of new weights in all three families.
pub(super) const STD: f64 = 0.02;

fn normal(std: f64) -> Initializer {
    Initializer::Normal { mean: 0.0, std }
}

/// A layer with normal weights and, if any, a bias of zeros.
pub(super) fn linear(
    [width_in, width_out]: [usize; 2],
    std: f64,
    bias: bool,
    device: &Device,
) -> Linear {
    Linear {
        weight: normal(std).init([width_in, width_out], device),
        bias: bias.then(|| Initializer::Zeros.init([width_out], device)),
    }
}

/// A table of `[rows, width]`.
pub(super) fn embedding(rows: usize, width: usize, device: &Device) -> Embedding {
    Embedding {
        weight: normal(STD).init([rows, width], device),
    }
}

/// `[batch, tokens, heads * width]` as `[batch, heads, tokens, width]`.
pub(super) fn heads(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, tokens, width] = x.dims();
    x.reshape([batch, tokens, heads, width / heads])
        .swap_dims(1, 2)
}

/// The other way.
pub(super) fn joined(x: Tensor<4>) -> Tensor<3> {
    x.swap_dims(1, 2).flatten(2, 3)
}
