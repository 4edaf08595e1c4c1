//! The two blocks of a decoder, pre-norm.

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Linear};
use burn::tensor::{Bool, Device, Tensor};
use leanburn_levers::checkpoint::Link;
use leanburn_levers::{Attention, Gelu, Rotary, gelu, linear as apply, swiglu};

use super::config::{Arch, GptConfig};
use crate::transformer::norm::Norm;
use crate::transformer::projection::{STD, heads, joined, linear};

/// What a block's attention sees besides its input; set for one forward.
#[derive(Clone, Debug, Default)]
pub(super) struct Surroundings {
    pub attention: Attention,
    /// `[batch, keys]`, true where a key is padding.
    pub padding: Option<Tensor<2, Bool>>,
    pub rotary: Option<Rotary>,
    /// Keys and values of earlier tokens, `[batch, heads, earlier, width]`; keys before their rotation.
    pub past: Option<[Tensor<4>; 2]>,
    /// Hand out keys and values for the next segment.
    pub record: bool,
}

/// The residual stream, and the keys and values recorded on the way, two a block.
pub(super) type Stream = (Tensor<3>, Vec<Tensor<4>>);

/// One layer of a decoder.
#[derive(Module, Debug)]
// All blocks of a network are of one kind.
#[allow(clippy::large_enum_variant)]
pub enum Block {
    /// As GPT-2.
    Gpt2(Gpt2Block),
    /// As Llama.
    Llama(LlamaBlock),
}

impl Block {
    pub(super) fn new(config: &GptConfig, epsilon: f64, device: &Device) -> Self {
        match config.arch {
            Arch::Gpt2 => Self::Gpt2(Gpt2Block::new(config, epsilon, device)),
            Arch::Llama => Self::Llama(LlamaBlock::new(config, epsilon, device)),
        }
    }

    pub(super) fn within(mut self, surroundings: Surroundings) -> Self {
        match &mut self {
            Self::Gpt2(block) => block.surroundings = surroundings,
            Self::Llama(block) => block.surroundings = surroundings,
        }
        self
    }
}

impl Link for Block {
    type Value = Stream;

    fn step(&self, stream: Stream) -> Stream {
        match self {
            Self::Gpt2(block) => block.step(stream),
            Self::Llama(block) => block.step(stream),
        }
    }
}

/// GPT-2's block; fields carry Hugging Face's names.
#[derive(Module, Debug)]
pub struct Gpt2Block {
    /// In front of the attention.
    pub ln_1: Norm,
    /// Queries, keys and values.
    pub c_attn: Linear,
    /// Behind the attention.
    pub c_proj: Linear,
    /// In front of the feed-forward network.
    pub ln_2: Norm,
    /// Its first layer.
    pub c_fc: Linear,
    /// Its second layer.
    pub c_out: Linear,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    surroundings: Surroundings,
}

impl Gpt2Block {
    fn new(config: &GptConfig, epsilon: f64, device: &Device) -> Self {
        let (d, h) = (config.width, config.hidden);
        let into_sum = residual_std(config);
        Self {
            ln_1: Norm::layer(d, epsilon, device),
            c_attn: linear([d, 3 * d], STD, true, device),
            c_proj: linear([d, d], into_sum, true, device),
            ln_2: Norm::layer(d, epsilon, device),
            c_fc: linear([d, h], STD, true, device),
            c_out: linear([h, d], into_sum, true, device),
            dropout: DropoutConfig::new(config.dropout).init(),
            heads: config.heads,
            surroundings: Surroundings::default(),
        }
    }

    fn step(&self, (x, mut recorded): Stream) -> Stream {
        let around = &self.surroundings;
        let qkv = apply(&self.c_attn, self.ln_1.forward(x.clone()));
        let attended = if around.past.is_none() && !around.record {
            around
                .attention
                .packed(qkv, self.heads, around.padding.clone())
        } else {
            let [q, k, v] = <[_; 3]>::try_from(qkv.chunk(3, 2)).expect("three parts");
            let [q, k, v] = [q, k, v].map(|part| heads(part, self.heads));
            around.attend(q, k, v, &mut recorded)
        };
        let x = x + self.dropout.forward(apply(&self.c_proj, attended));
        let middle = gelu(apply(&self.c_fc, self.ln_2.forward(x.clone())), Gelu::Tanh);
        (
            x + self.dropout.forward(apply(&self.c_out, middle)),
            recorded,
        )
    }
}

/// Llama's block; fields carry Hugging Face's names.
#[derive(Module, Debug)]
pub struct LlamaBlock {
    /// In front of the attention.
    pub input_layernorm: Norm,
    /// Queries.
    pub q_proj: Linear,
    /// Keys.
    pub k_proj: Linear,
    /// Values.
    pub v_proj: Linear,
    /// Behind the attention.
    pub o_proj: Linear,
    /// In front of the feed-forward network.
    pub post_attention_layernorm: Norm,
    /// What opens `up_proj`.
    pub gate_proj: Linear,
    /// Its first layer.
    pub up_proj: Linear,
    /// Its second layer.
    pub down_proj: Linear,
    dropout: Dropout,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    surroundings: Surroundings,
}

impl LlamaBlock {
    fn new(config: &GptConfig, epsilon: f64, device: &Device) -> Self {
        let (d, h) = (config.width, config.hidden);
        let into_sum = residual_std(config);
        let layer = |sizes, std| linear(sizes, std, false, device);
        Self {
            input_layernorm: Norm::rms(d, epsilon, device),
            q_proj: layer([d, d], STD),
            k_proj: layer([d, d], STD),
            v_proj: layer([d, d], STD),
            o_proj: layer([d, d], into_sum),
            post_attention_layernorm: Norm::rms(d, epsilon, device),
            gate_proj: layer([d, h], STD),
            up_proj: layer([d, h], STD),
            down_proj: layer([h, d], into_sum),
            dropout: DropoutConfig::new(config.dropout).init(),
            heads: config.heads,
            surroundings: Surroundings::default(),
        }
    }

    fn step(&self, (x, mut recorded): Stream) -> Stream {
        let normed = self.input_layernorm.forward(x.clone());
        let [q, k, v] = [&self.q_proj, &self.k_proj, &self.v_proj]
            .map(|layer| heads(apply(layer, normed.clone()), self.heads));
        drop(normed);
        let attended = self.surroundings.attend(q, k, v, &mut recorded);
        let x = x + self.dropout.forward(apply(&self.o_proj, attended));
        let normed = self.post_attention_layernorm.forward(x.clone());
        let [gate, up] = [&self.gate_proj, &self.up_proj].map(|layer| apply(layer, normed.clone()));
        drop(normed);
        let out = apply(&self.down_proj, swiglu(gate, up));
        (x + self.dropout.forward(out), recorded)
    }
}

fn residual_std(config: &GptConfig) -> f64 {
    STD / (2.0 * config.layers as f64).sqrt()
}

impl Surroundings {
    /// Attention over earlier and present tokens.
    fn attend(
        &self,
        q: Tensor<4>,
        k: Tensor<4>,
        v: Tensor<4>,
        recorded: &mut Vec<Tensor<4>>,
    ) -> Tensor<3> {
        let ([k, v], earlier) = match self.past.clone() {
            Some([keys, values]) => {
                let earlier = keys.dims()[2];
                (
                    [
                        Tensor::cat(vec![keys, k], 2),
                        Tensor::cat(vec![values, v], 2),
                    ],
                    earlier,
                )
            }
            None => ([k, v], 0),
        };
        if self.record {
            recorded.extend([k.clone().detach(), v.clone().detach()]);
        }
        let (q, k) = match &self.rotary {
            // Only differences of positions count, so the earliest key may stand at 0.
            Some(rotary) => (rotary.rotate(q, earlier), rotary.rotate(k, 0)),
            None => (q, k),
        };
        joined(self.attention.forward(q, k, v, self.padding.clone()))
    }
}
