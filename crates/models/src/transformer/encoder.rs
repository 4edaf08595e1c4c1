//! A BERT-like encoder: post-norm, token types, a pooler.

mod config;
mod layer;

use burn::module::Module;
use burn::nn::{Dropout, DropoutConfig, Embedding, Linear};
use burn::tensor::{Bool, Device, FloatDType, Int, Tensor};
use leanburn_levers::checkpoint::Chain;
use leanburn_levers::{
    Attention, CheckpointPolicy, Gelu, Offload, Policy, embedding as look_up, gelu, linear as apply,
};

use super::computing::Computing;
use super::norm::Norm;
use super::projection::{STD, embedding, linear};

pub use config::EncoderConfig;
pub use layer::EncoderLayer;

/// An encoder; fields carry the names of Hugging Face's `BertModel`.
#[derive(Module, Debug)]
pub struct Encoder {
    /// Tokens, `[vocabulary, width]`.
    pub word_embeddings: Embedding,
    /// Positions, `[context, width]`.
    pub position_embeddings: Embedding,
    /// Which of two texts a token belongs to, `[types, width]`.
    pub token_type_embeddings: Embedding,
    /// Behind the embeddings.
    pub embeddings_norm: Norm,
    /// The layers.
    pub layer: Vec<EncoderLayer>,
    /// On the first token's output.
    pub pooler: Linear,
    /// On the pooler's output, if the encoder classifies.
    pub classifier: Option<Linear>,
    /// Between the outputs and the tied head, if the encoder fills in masked tokens.
    pub transform: Option<Transform>,
    dropout: Dropout,
    #[module(skip)]
    config: EncoderConfig,
    #[module(skip)]
    computing: Computing,
}

/// What BERT has in front of its masked-language head.
#[derive(Module, Debug)]
pub struct Transform {
    /// Linear and GELU.
    pub dense: Linear,
    /// LayerNorm.
    pub norm: Norm,
}

impl Encoder {
    /// The sizes.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Computes by this policy from now on. Embeddings, norms, pooler and classifier stay in f32.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.computing.policy = policy;
        let f32_parts = [
            "word_embeddings",
            "position_embeddings",
            "token_type_embeddings",
            "pooler",
            "classifier",
        ];
        policy.attach(self, &f32_parts)
    }

    /// Recomputes by this policy in the backward from now on; the chain is the layers.
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

    /// What is recomputed, and where kept inputs wait.
    pub fn checkpointing(&self) -> &Chain {
        &self.computing.chain
    }

    /// Outputs `[batch, tokens, width]` in the compute dtype. `types` is 0 or 1 a token, all 0 if left out;
    /// `padding` is true where a token is padding. All are `[batch, tokens]`.
    ///
    /// # Panics
    ///
    /// Where there are more tokens than the context.
    pub fn hidden(
        &self,
        tokens: Tensor<2, Int>,
        types: Option<Tensor<2, Int>>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<3> {
        let (config, computing) = (&self.config, &self.computing);
        let [_, count] = tokens.dims();
        assert!(
            count <= config.context,
            "{count} tokens, but the context is {}",
            config.context
        );
        let types = types.unwrap_or_else(|| tokens.zeros_like());
        let positions = self.position_embeddings.weight.val();
        let x = look_up(&self.word_embeddings, tokens)
            + positions.slice([0..count, 0..config.width]).unsqueeze()
            + look_up(&self.token_type_embeddings, types);
        let x = self
            .embeddings_norm
            .forward(x.cast(computing.policy.compute.dtype()));
        let layers = self.layer.iter().cloned();
        let layers: Vec<_> = layers
            .map(|layer| layer.within(computing.attention, padding.clone()))
            .collect();
        computing.chain.run(&layers, self.dropout.forward(x))
    }

    /// The first token's output through pooler and tanh, `[batch, width]` in f32.
    pub fn pooled(&self, hidden: Tensor<3>) -> Tensor<2> {
        let [batch, _, width] = hidden.dims();
        let first = hidden.slice([0..batch, 0..1, 0..width]).squeeze_dim::<2>(1);
        apply(&self.pooler, first.cast(FloatDType::F32)).tanh()
    }

    /// Class logits `[batch, classes]` in f32.
    ///
    /// # Panics
    ///
    /// Where the encoder was built without classes.
    pub fn classify(
        &self,
        tokens: Tensor<2, Int>,
        types: Option<Tensor<2, Int>>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<2> {
        let classifier = self.classifier.as_ref().expect("an encoder with classes");
        let pooled = self.pooled(self.hidden(tokens, types, padding));
        apply(classifier, self.dropout.forward(pooled))
    }

    /// The sum of the losses of filling in the tokens that `targets` names, `[1]` in f32; without logits for
    /// all tokens at once. `targets` is `[batch, tokens]`, [`CrossEntropy::ignore`](leanburn_levers::CrossEntropy::ignore) where nothing is asked.
    ///
    /// # Panics
    ///
    /// Where the encoder was built without a masked-language head.
    pub fn loss_sum(
        &self,
        tokens: Tensor<2, Int>,
        targets: Tensor<2, Int>,
        padding: Option<Tensor<2, Bool>>,
    ) -> Tensor<1> {
        let transform = self
            .transform
            .as_ref()
            .expect("an encoder with a masked-language head");
        let hidden = self.hidden(tokens, None, padding);
        let hidden = gelu(apply(&transform.dense, hidden), Gelu::Exact);
        let hidden: Tensor<2> = transform.norm.forward(hidden).flatten(0, 1);
        let weight = self.word_embeddings.weight.val();
        self.computing
            .loss
            .sum(hidden, weight, targets.flatten(0, 1))
    }

    fn new(config: &EncoderConfig, device: &Device) -> Self {
        let (d, epsilon) = (config.width, EncoderConfig::EPSILON);
        Self {
            word_embeddings: embedding(config.vocabulary, d, device),
            position_embeddings: embedding(config.context, d, device),
            token_type_embeddings: embedding(config.types, d, device),
            embeddings_norm: Norm::layer(d, epsilon, device),
            layer: (0..config.layers)
                .map(|_| EncoderLayer::new(config, device))
                .collect(),
            pooler: linear([d, d], STD, true, device),
            classifier: config
                .classes
                .map(|classes| linear([d, classes], STD, true, device)),
            transform: config.masked_head.then(|| Transform {
                dense: linear([d, d], STD, true, device),
                norm: Norm::layer(d, epsilon, device),
            }),
            dropout: DropoutConfig::new(config.dropout).init(),
            computing: Computing::new(Attention::default(), config.dropout),
            config: config.clone(),
        }
    }
}
