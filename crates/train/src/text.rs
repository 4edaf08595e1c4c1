//! Language modelling with a Transformer: the next token (decoders), or tokens that were masked (encoders).

mod args;
mod limits;
mod loaders;
mod mask;
mod model;
mod network;
mod recipe;
mod source;
mod writing;

use std::path::PathBuf;

use leanburn_data::tokens::Tokens;
use serde_json::{Value, json};

use crate::recipe::{Defaults, OptimizerRecipe, TrainRecipe, within};
use crate::task::Measure;
use crate::{OptimizerKind, Recipe, Schedule, Score, Task, TrainError};

pub use args::TextArgs;
pub use loaders::TextLoaders;
pub use model::{Network, TextModel};
pub use network::TextFacts;
pub use recipe::{Size, TextData, TransformerRecipe};
pub use source::SourceArgs;
pub use writing::WritingArgs;

/// Language modelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text;

impl Task for Text {
    type Model = TransformerRecipe;
    type Data = TextData;
    type Loaders = TextLoaders;
    type Batch = Tokens;

    const ITEMS: &'static str = "tokens";
    const MEASURES: &'static [Measure] = &[
        ("bits_per_byte", Score::bits_per_byte),
        ("perplexity", Score::perplexity),
    ];

    fn defaults() -> Defaults {
        Defaults {
            train: TrainRecipe {
                batch: 4,
                accumulate: 1,
                epochs: 1,
                steps: Some(1000),
                seed: 0,
                save_every: 0,
                cleanup: false,
            },
            optimizer: OptimizerRecipe {
                name: OptimizerKind::AdamW,
                lr: 4e-3,
                weight_decay: 0.1,
                clip_norm: 1.0,
                // As GPT-3 and Llama; gradients of tokens that are rare are far below Burn's 1e-5.
                beta2: 0.95,
                epsilon: 1e-8,
            },
            schedule: Schedule::default(),
        }
    }

    fn validate(recipe: &Recipe<Self>) -> Result<(), TrainError> {
        let (model, data) = (&recipe.model, &recipe.data);
        within(data.context > 0, "context (data.context)", "at least 1")?;
        within(
            (0.0..1.0).contains(&data.val_fraction),
            "data.val_fraction",
            "a fraction, 0 to below 1",
        )?;
        within(
            (0.0..1.0).contains(&model.dropout),
            "dropout (model.dropout)",
            "a probability, 0 to below 1",
        )?;
        within(
            (0.0..1.0).contains(&model.smoothing),
            "model.smoothing",
            "a fraction, 0 to below 1",
        )?;
        recipe.validate_sizes()
    }

    fn source(recipe: &mut Recipe<Self>) -> Option<&mut String> {
        Some(&mut recipe.data.source)
    }

    fn weights(recipe: &mut Recipe<Self>) -> Option<&mut Option<PathBuf>> {
        Some(&mut recipe.model.weights)
    }

    fn open(recipe: &Recipe<Self>) -> Result<TextLoaders, TrainError> {
        TextLoaders::open(recipe)
    }

    fn model_name(model: &TransformerRecipe) -> String {
        model.preset.to_string()
    }

    fn micro_batch(recipe: &Recipe<Self>) -> usize {
        recipe.train.batch.saturating_mul(recipe.data.context)
    }

    fn facts(recipe: &Recipe<Self>) -> Vec<(&'static str, Value)> {
        vec![
            ("context", json!(recipe.data.context)),
            ("attention_chunk", json!(recipe.model.attention_chunk)),
            ("loss_chunk", json!(recipe.model.loss_chunk)),
        ]
    }

    fn tell(score: &Score) -> String {
        format!(
            "{:.3} bits per byte, perplexity {:.2}",
            score.bits_per_byte(),
            score.perplexity()
        )
    }
}
