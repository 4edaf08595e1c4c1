//! What layers with 8-bit weights compute.

use burn::module::Param;
use burn::nn::conv::Conv2d;
use burn::nn::{Embedding, Linear};
use burn::tensor::{Device, Int, Tensor};

use super::Int8;

/// How products with 8-bit inputs are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// uint8 times int8, summed exactly in 32 bits.
    Integer,
    /// Real numbers, rounded to what the integers would be.
    Simulated,
}

impl Arithmetic {
    /// What this device does for layers whose inputs are rounded.
    pub fn of(device: &Device) -> Self {
        match on_flex(device) {
            true => Self::Integer,
            false => Self::Simulated,
        }
    }

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Integer => "integer",
            Self::Simulated => "simulated",
        }
    }
}

pub(super) fn on_flex(_device: &Device) -> bool {
    #[cfg(feature = "flex")]
    return super::on_flex::is(_device);
    #[cfg(not(feature = "flex"))]
    false
}

pub(crate) fn conv2d(layer: &Conv2d, int8: &Int8, x: Tensor<4>) -> Tensor<4> {
    #[cfg(feature = "flex")]
    if let Some(y) = super::on_flex::conv2d(layer, int8, &x) {
        return y;
    }
    layer.forward(int8.rounded(x))
}

/// `x` is `[rows, in]`.
pub(crate) fn linear(layer: &Linear, int8: &Int8, x: Tensor<2>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    if let Some(y) = super::on_flex::linear(layer, int8, &x) {
        return y;
    }
    // Burn multiplies by packed integers where its backend can; the scales of the columns follow.
    let sums = int8.rounded(x).matmul(layer.weight.base());
    let y = sums * int8.spread();
    match &layer.bias {
        Some(bias) => y + bias.val().unsqueeze(),
        None => y,
    }
}

/// Rows `[batch, tokens, width]` of an embedding, for `tokens` `[batch, tokens]`. Of a table of integers, only
/// these rows become real numbers.
pub fn embedding(layer: &Embedding, tokens: Tensor<2, Int>) -> Tensor<3> {
    let Some(int8) = layer.weight.reparameterization::<Int8>() else {
        return layer.forward(tokens);
    };
    let [batch, count] = tokens.dims();
    let flat: Tensor<1, Int> = tokens.flatten(0, 1);
    rows(&layer.weight, int8, flat).reshape([batch as i64, count as i64, -1])
}

fn rows(table: &Param<Tensor<2>>, int8: &Int8, rows: Tensor<1, Int>) -> Tensor<2> {
    if !on_flex(&table.device()) {
        // Burn's other backends would round the rows once more.
        return table.val().select(0, rows);
    }
    let scale: Tensor<1> = int8.scale.val().select(0, rows.clone());
    table.base().select(0, rows).dequantize() * scale.unsqueeze_dim(1)
}
