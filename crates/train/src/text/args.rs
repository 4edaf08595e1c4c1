//! Command-line flags of a text run.

use std::path::PathBuf;

use clap::Args;

use super::{Size, Text};
use crate::Recipe;
use crate::args::{Flags, set};

/// Flags over the recipe's `[model]` and `[data]`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct TextArgs {
    /// tiny (a Llama of 0.9M parameters on bytes), small, medium, large, xl (GPT-2: 124M, 355M, 774M, 1.5B),
    /// llama-7b, or bert-base (fills in masked tokens).
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Size>,
    /// Blocks, instead of the preset's.
    #[arg(long, value_name = "N")]
    pub layers: Option<usize>,
    /// Attention heads, instead of the preset's.
    #[arg(long, value_name = "N")]
    pub heads: Option<usize>,
    /// Width of the residual stream, instead of the preset's.
    #[arg(long, value_name = "N")]
    pub width: Option<usize>,
    /// Distinct tokens of the network; by default as many as the data have.
    #[arg(long, value_name = "N")]
    pub vocabulary: Option<usize>,
    /// Probability that an activation is dropped in training (0 to below 1).
    #[arg(long, value_name = "P")]
    pub dropout: Option<f64>,
    /// Queries and keys of an attention chunk: no tensor of context x context is made. 0 takes all at once.
    #[arg(long, value_name = "N")]
    pub attention_chunk: Option<usize>,
    /// Tokens whose logits exist at once: no tensor of tokens x vocabulary is made. 0 takes all.
    #[arg(long, value_name = "N")]
    pub loss_chunk: Option<usize>,
    /// The tokenizer.json of Hugging Face's format that made the token file, or will make it from --text.
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<PathBuf>,
    /// Tokens of a sequence.
    #[arg(long, value_name = "N")]
    pub context: Option<usize>,
    /// Walk through the text in order and remember the keys and values of N earlier tokens, so that attention
    /// reaches further back than the context; 0 takes independent windows. Rotary positions only.
    #[arg(long, value_name = "N")]
    pub carry: Option<usize>,
}

impl Flags<Text> for TextArgs {
    fn apply(&self, recipe: &mut Recipe<Text>) {
        let (model, data) = (&mut recipe.model, &mut recipe.data);
        set(&mut model.preset, self.preset);
        model.layers = self.layers.or(model.layers);
        model.heads = self.heads.or(model.heads);
        model.width = self.width.or(model.width);
        model.vocabulary = self.vocabulary.or(model.vocabulary);
        set(&mut model.dropout, self.dropout);
        model.attention_chunk = self.attention_chunk.or(model.attention_chunk);
        model.loss_chunk = self.loss_chunk.or(model.loss_chunk);
        data.tokenizer = self.tokenizer.clone().or(data.tokenizer.take());
        set(&mut data.context, self.context);
        set(&mut data.carry, self.carry);
    }
}
