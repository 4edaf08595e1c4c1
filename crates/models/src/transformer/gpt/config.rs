//! Which decoder to build.

use std::fmt;

use burn::nn::DropoutConfig;
use burn::tensor::Device;
use leanburn_levers::Attention;
use serde::{Deserialize, Serialize};

use super::Gpt;
use super::block::Block;
use crate::transformer::computing::Computing;
use crate::transformer::norm::Norm;
use crate::transformer::projection::{STD, embedding, linear};
use crate::transformer::{SizeError, check_dropout, check_heads, check_sizes, require};

/// The two families of decoders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// LayerNorm, learned positions, GELU, biases, the head tied to the embedding.
    #[default]
    Gpt2,
    /// RMSNorm, rotary positions, SwiGLU, no biases, a head of its own unless tied.
    Llama,
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Gpt2 => "gpt2",
            Self::Llama => "llama",
        })
    }
}

/// Sizes of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct GptConfig {
    /// Which family.
    pub arch: Arch,
    /// Distinct tokens.
    pub vocabulary: usize,
    /// Longest sequence at once, tokens.
    pub context: usize,
    /// Blocks.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the feed-forward network.
    pub hidden: usize,
    /// Probability that an activation is dropped in training, after the embedding and before each residual
    /// sum. Attention weights are not dropped: there is no tensor of them to drop from.
    pub dropout: f64,
    /// Head and token embedding share one matrix.
    pub tied: bool,
    /// Base of the rotary angles.
    pub theta: f64,
}

impl GptConfig {
    /// A GPT-2 with `layers` of `heads` heads and `width`.
    pub fn gpt2(layers: usize, heads: usize, width: usize) -> Self {
        Self {
            arch: Arch::Gpt2,
            vocabulary: 50_257,
            context: 1024,
            layers,
            heads,
            width,
            hidden: 4 * width,
            dropout: 0.0,
            tied: true,
            theta: 10_000.0,
        }
    }

    /// A Llama, with the feed-forward width of its authors: 8/3 of the width, rounded up to a multiple of 256
    /// (of 16 below width 256).
    pub fn llama(layers: usize, heads: usize, width: usize) -> Self {
        let step = if width < 256 { 16 } else { 256 };
        Self {
            arch: Arch::Llama,
            vocabulary: 32_000,
            context: 2048,
            hidden: (8 * width / 3).next_multiple_of(step),
            tied: false,
            ..Self::gpt2(layers, heads, width)
        }
    }

    /// With another vocabulary.
    pub fn with_vocabulary(mut self, vocabulary: usize) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// With another context.
    pub fn with_context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }

    /// With dropout, or none.
    pub fn with_dropout(mut self, dropout: f64) -> Self {
        self.dropout = dropout;
        self
    }

    /// With head and embedding tied, or not.
    pub fn with_tied(mut self, tied: bool) -> Self {
        self.tied = tied;
        self
    }

    /// Refuses sizes that do not fit together.
    pub fn validate(&self) -> Result<(), SizeError> {
        let Self { heads, width, .. } = *self;
        let sizes = [
            ("vocabulary", self.vocabulary),
            ("context", self.context),
            ("layers", self.layers),
            ("heads", heads),
            ("width", width),
            ("hidden", self.hidden),
        ];
        check_sizes(&sizes)?;
        check_heads(width, heads)?;
        check_dropout(self.dropout)?;
        let even = self.arch == Arch::Gpt2 || (width / heads).is_multiple_of(2);
        require(even, || {
            format!(
                "rotary positions need an even head width, not {}",
                width / heads
            )
        })?;
        require(self.arch == Arch::Llama || self.tied, || {
            "a gpt2 has its head tied to the embedding; use arch = llama for a head of its own"
                .into()
        })?;
        self.checked_parameters().map(|_| ())
    }

    /// Trainable parameters, from the sizes alone; a tied head counts once.
    ///
    /// # Panics
    ///
    /// Where the number is beyond u64; [`Self::validate`] refuses that.
    pub fn parameters(&self) -> u64 {
        self.checked_parameters().expect("validated sizes")
    }

    fn checked_parameters(&self) -> Result<u64, SizeError> {
        let [v, c, l, d, h] = [
            self.vocabulary,
            self.context,
            self.layers,
            self.width,
            self.hidden,
        ]
        .map(|n| n as u128);
        let (block, outside) = match self.arch {
            Arch::Gpt2 => (
                4 * d * d + 4 * d + 2 * d * h + h + d + 4 * d,
                v * d + c * d + 2 * d,
            ),
            Arch::Llama => (4 * d * d + 3 * d * h + 2 * d, v * d + d),
        };
        let head = if self.tied { 0 } else { v * d };
        let total = block
            .checked_mul(l)
            .and_then(|blocks| blocks.checked_add(outside + head));
        total
            .and_then(|total| u64::try_from(total).ok())
            .ok_or_else(|| SizeError("more parameters than can be counted in 64 bits".into()))
    }

    /// Builds the network in f32, initialised as its authors do it: normal weights of deviation 0.02, those in
    /// front of the residual sums over `sqrt(2 layers)`.
    pub fn init(&self, device: &Device) -> Result<Gpt, SizeError> {
        self.validate()?;
        let (epsilon, d) = (1e-5, self.width);
        let last = match self.arch {
            Arch::Gpt2 => Norm::layer(d, epsilon, device),
            Arch::Llama => Norm::rms(d, epsilon, device),
        };
        let learned = self.arch == Arch::Gpt2;
        Ok(Gpt {
            wte: embedding(self.vocabulary, d, device),
            wpe: learned.then(|| embedding(self.context, d, device)),
            h: (0..self.layers)
                .map(|_| Block::new(self, epsilon, device))
                .collect(),
            ln_f: last,
            lm_head: (!self.tied).then(|| linear([d, self.vocabulary], STD, false, device)),
            dropout: DropoutConfig::new(self.dropout).init(),
            computing: Computing::new(Attention::causal(), self.dropout),
            config: self.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_do_not_fit_are_refused_with_those_that_do() {
        let error = GptConfig::gpt2(2, 5, 64)
            .validate()
            .unwrap_err()
            .to_string();
        assert!(error.contains("[1, 2, 4, 8, 16, 32, 64]"), "{error}");
        assert!(GptConfig::gpt2(0, 4, 64).validate().is_err());
        assert!(GptConfig::llama(2, 4, 12).validate().is_err());
        let most = u32::MAX as usize;
        assert!(GptConfig::gpt2(most + 1, 1, 64).validate().is_err());
        let mut huge = GptConfig::gpt2(most, 1, most);
        huge.hidden = most;
        assert!(huge.validate().unwrap_err().to_string().contains("64 bits"));
    }
}
