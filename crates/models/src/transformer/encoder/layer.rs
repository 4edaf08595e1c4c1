//! One layer of an encoder, post-norm.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear};
use burn::tensor::{Bool, Device, Tensor};
use leanburn_levers::checkpoint::Link;
use leanburn_levers::{Attention, Gelu, gelu, linear as apply};

use super::EncoderConfig;
use crate::transformer::norm::Norm;
use crate::transformer::projection::{STD, heads, joined, linear};

/// BERT's layer.
#[derive(Module, Debug)]
pub struct EncoderLayer {
    /// Queries.
    pub query: Linear,
    /// Keys.
    pub key: Linear,
    /// Values.
    pub value: Linear,
    /// Behind the attention.
    pub attention_output: Linear,
    /// Behind the first sum.
    pub attention_norm: Norm,
    /// First layer of the feed-forward network.
    pub intermediate: Linear,
    /// Its second layer.
    pub output: Linear,
    /// Behind the second sum.
    pub output_norm: Norm,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    attention: Attention,
    #[module(skip)]
    padding: Option<Tensor<2, Bool>>,
}

impl EncoderLayer {
    pub(super) fn new(config: &EncoderConfig, device: &Device) -> Self {
        let (d, h) = (config.width, config.hidden);
        let square = || linear([d, d], STD, true, device);
        let norm = || Norm::layer(d, EncoderConfig::EPSILON, device);
        Self {
            query: square(),
            key: square(),
            value: square(),
            attention_output: square(),
            attention_norm: norm(),
            intermediate: linear([d, h], STD, true, device),
            output: linear([h, d], STD, true, device),
            output_norm: norm(),
            dropout: DropoutConfig::new(config.dropout).init(),
            heads: config.heads,
            attention: Attention::default(),
            padding: None,
        }
    }

    /// A handle on the same parameters, for one forward.
    pub(super) fn within(mut self, attention: Attention, padding: Option<Tensor<2, Bool>>) -> Self {
        (self.attention, self.padding) = (attention, padding);
        self
    }
}

impl Link for EncoderLayer {
    type Value = Tensor<3>;

    fn step(&self, x: Tensor<3>) -> Tensor<3> {
        let [q, k, v] = [&self.query, &self.key, &self.value]
            .map(|layer| heads(apply(layer, x.clone()), self.heads));
        let attended = joined(self.attention.forward(q, k, v, self.padding.clone()));
        let attended = self
            .dropout
            .forward(apply(&self.attention_output, attended));
        let x = self.attention_norm.forward(x + attended);
        let middle = gelu(apply(&self.intermediate, x.clone()), Gelu::Exact);
        self.output_norm
            .forward(x + self.dropout.forward(apply(&self.output, middle)))
    }
}
