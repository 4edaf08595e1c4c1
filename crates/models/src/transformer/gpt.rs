//! A decoder of either family: tokens in, the next token out.

mod block;
mod config;
mod generate;
mod norms;
mod preset;
mod state;

use burn::module::Module;
use burn::nn::{Dropout, Embedding, Linear};
use burn::tensor::{Bool, FloatDType, Int, Tensor};
use leanburn_levers::checkpoint::Chain;
use leanburn_levers::{CheckpointPolicy, Offload, Policy, Rotary, embedding};

use super::computing::Computing;
use super::norm::Norm;
use block::Surroundings;

pub use block::{Block, Gpt2Block, LlamaBlock};
pub use config::{Arch, GptConfig};
pub use generate::{Generate, GenerateError};
pub use norms::NormAndReaders;
pub use preset::Preset;
pub use state::State;

/// A decoder; fields carry GPT-2's names in Hugging Face's library.
#[derive(Module, Debug)]
pub struct Gpt {
    /// Token embedding, `[vocabulary, width]`, and the head where that is tied to it.
    pub wte: Embedding,
    /// Learned positions, `[context, width]`.
    pub wpe: Option<Embedding>,
    /// The layers.
    pub h: Vec<Block>,
    /// The last norm.
    pub ln_f: Norm,
    /// A head of its own, `[width, vocabulary]`.
    pub lm_head: Option<Linear>,
    dropout: Dropout,
    #[module(skip)]
    config: GptConfig,
    #[module(skip)]
    computing: Computing,
}

impl Gpt {
    /// The sizes.
    pub fn config(&self) -> &GptConfig {
        &self.config
    }

    /// Computes by this policy from now on. Embeddings, norms and the head keep f32 parameters; their outputs
    /// are in the compute dtype, softmax and loss in f32.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.computing.policy = policy;
        policy.attach(self, &["wte", "wpe", "lm_head"])
    }

    /// Recomputes by this policy in the backward from now on; the chain is the blocks.
    pub fn with_checkpoint(mut self, policy: CheckpointPolicy, offload: Offload) -> Self {
        self.computing.checkpoint(policy, offload);
        self
    }

    /// Queries and keys of an attention chunk, and tokens of a loss chunk; 0 takes all at once, `None` a size
    /// that suits.
    pub fn with_chunks(mut self, attention: Option<usize>, loss: Option<usize>) -> Self {
        self.computing.chunks(attention, loss);
        self
    }

    /// With label smoothing.
    pub fn with_smoothing(mut self, smoothing: f64) -> Self {
        self.computing.loss.smoothing = smoothing;
        self
    }

    /// What is recomputed, and where kept inputs wait.
    pub fn checkpointing(&self) -> &Chain {
        &self.computing.chain
    }

    /// Logits `[batch, tokens, vocabulary]` in f32, for `tokens` `[batch, tokens]`. `padding` `[batch,
    /// tokens]` is true where a token is padding.
    ///
    /// # Panics
    ///
    /// Where there are more tokens than the context.
    pub fn forward(&self, tokens: Tensor<2, Int>, padding: Option<Tensor<2, Bool>>) -> Tensor<3> {
        self.logits(self.hidden(tokens, padding))
    }

    /// The sum of the losses over targets that count, `[1]` in f32, without logits for all tokens at once.
    /// `targets` is `[batch, tokens]`, [`CrossEntropy::ignore`](leanburn_levers::CrossEntropy::ignore) where there is none.
    pub fn loss_sum(
        &self,
        tokens: Tensor<2, Int>,
        targets: Tensor<2, Int>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<1> {
        self.loss_of(self.hidden(tokens, padding), targets)
    }

    pub(crate) fn loss_of(&self, hidden: Tensor<3>, targets: Tensor<2, Int>) -> Tensor<1> {
        let hidden: Tensor<2> = hidden.flatten(0, 1);
        self.computing
            .loss
            .sum(hidden, self.head(), targets.flatten(0, 1))
    }

    /// Output of the last norm, `[batch, tokens, width]` in the compute dtype.
    pub fn hidden(&self, tokens: Tensor<2, Int>, padding: Option<Tensor<2, Bool>>) -> Tensor<3> {
        let surroundings = Surroundings {
            padding,
            ..self.surroundings(tokens.dims()[1], &tokens)
        };
        self.run(self.embed(tokens, 0), |_| surroundings.clone()).0
    }

    fn surroundings(&self, positions: usize, tokens: &Tensor<2, Int>) -> Surroundings {
        let config = &self.config;
        let rotary = (config.arch == Arch::Llama).then(|| {
            let width = config.width / config.heads;
            Rotary::new(positions, width, config.theta, &tokens.device())
        });
        Surroundings {
            attention: self.computing.attention,
            rotary,
            ..Surroundings::default()
        }
    }

    /// Embeds tokens whose first stands at position `start`.
    fn embed(&self, tokens: Tensor<2, Int>, start: usize) -> Tensor<3> {
        let config = &self.config;
        let [_, count] = tokens.dims();
        assert!(
            start + count <= config.context || self.wpe.is_none(),
            "{} tokens, but the context is {}",
            start + count,
            config.context
        );
        let mut x = embedding(&self.wte, tokens);
        if let Some(wpe) = &self.wpe {
            let rows = wpe
                .weight
                .val()
                .slice([start..start + count, 0..config.width]);
            x = x + rows.unsqueeze();
        }
        let dtype = self.computing.policy.compute.dtype();
        self.dropout.forward(x.cast(dtype))
    }

    fn run(
        &self,
        x: Tensor<3>,
        surroundings: impl Fn(usize) -> Surroundings,
    ) -> (Tensor<3>, Vec<Tensor<4>>) {
        let blocks = self.h.iter().cloned().enumerate();
        let blocks: Vec<_> = blocks
            .map(|(index, block)| block.within(surroundings(index)))
            .collect();
        let (x, recorded) = self.computing.chain.run(&blocks, (x, Vec::new()));
        (self.ln_f.forward(x), recorded)
    }

    /// The head as `[vocabulary, width]`, f32.
    fn head(&self) -> Tensor<2> {
        match &self.lm_head {
            Some(head) => head.weight.val().transpose(),
            None => self.wte.weight.val(),
        }
    }

    fn logits(&self, hidden: Tensor<3>) -> Tensor<3> {
        let [batch, tokens, width] = hidden.dims();
        let hidden = hidden.reshape([batch * tokens, width]);
        let weight = self.head().cast(FloatDType::from(hidden.dtype()));
        let logits = hidden.matmul(weight.transpose()).cast(FloatDType::F32);
        logits.reshape([batch as i64, tokens as i64, -1])
    }
}
