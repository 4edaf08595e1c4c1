//! The network of a text recipe.

use std::path::Path;
use std::sync::{Arc, Mutex};

use burn::tensor::{DType, Device, Tensor};
use leanburn_data::tokens::Tokens;
use leanburn_levers::Policy;
use leanburn_models::transformer::gpt::State;

use super::recipe::Config;
use super::{Network, Text, TextLoaders, TextModel, limits};
use crate::task::{Builds, Lever};
use crate::{Backend, Recipe, TrainError};

/// What the tokens decide about the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextFacts {
    /// Distinct tokens of the data.
    pub tokens: usize,
    /// Bytes of text that a token stands for, on average.
    pub bytes_per_token: f64,
}

impl Builds for Text {
    type Network = TextModel;
    type Facts = TextFacts;

    fn facts_of(loaders: &TextLoaders) -> TextFacts {
        TextFacts {
            tokens: loaders.tokens(),
            bytes_per_token: loaders.bytes_per_token(),
        }
    }

    fn data_facts(recipe: &Recipe<Self>) -> Result<TextFacts, TrainError> {
        let corpus = TextLoaders::corpus(recipe)?;
        Ok(TextFacts {
            tokens: corpus.vocab() as usize,
            bytes_per_token: corpus.bytes_per_token(),
        })
    }

    fn check(recipe: &Recipe<Self>, facts: &TextFacts, backend: Backend) -> Result<(), TrainError> {
        limits::check(recipe, facts.tokens, backend)
    }

    fn init(
        recipe: &Recipe<Self>,
        facts: &TextFacts,
        device: &Device,
    ) -> Result<TextModel, TrainError> {
        let network = match recipe.config(facts.tokens) {
            Config::Gpt(config) => Network::Gpt(config.init(device)?),
            Config::Encoder(config) => Network::Encoder(config.init(device)?),
        };
        let carry = recipe.data.carry;
        Ok(TextModel {
            network,
            bytes_per_token: facts.bytes_per_token,
            carried: (carry > 0).then(|| Arc::new(Mutex::new(State::new(carry)))),
        })
    }

    fn load(recipe: &Recipe<Self>, model: TextModel) -> Result<TextModel, TrainError> {
        let Some(path) = &recipe.model.weights else {
            return Ok(model);
        };
        let (network, report) = match model.network {
            Network::Gpt(gpt) => {
                let (loaded, report) = gpt.load_weights(path)?;
                (Network::Gpt(loaded), report)
            }
            Network::Encoder(encoder) => {
                let (loaded, report) = encoder.load_weights(path, false)?;
                (Network::Encoder(loaded), report)
            }
        };
        eprintln!("{}: {report}", path.display());
        Ok(TextModel { network, ..model })
    }

    fn save(model: &TextModel, path: &Path) -> Result<(), TrainError> {
        model.save_weights(path)
    }

    fn with_levers(recipe: &Recipe<Self>, policy: Policy, model: TextModel) -> TextModel {
        let (checkpoint, offload) = (recipe.checkpoint.clone(), recipe.offload);
        let (attention, loss) = (recipe.model.attention_chunk, recipe.model.loss_chunk);
        let network = match model.network {
            Network::Gpt(gpt) => {
                let gpt = gpt
                    .with_smoothing(recipe.model.smoothing)
                    .with_chunks(attention, loss)
                    .with_policy(policy);
                Network::Gpt(gpt.with_checkpoint(checkpoint, offload))
            }
            Network::Encoder(encoder) => {
                let encoder = encoder.with_chunks(attention, loss).with_policy(policy);
                Network::Encoder(encoder.with_checkpoint(checkpoint, offload))
            }
        };
        TextModel { network, ..model }
    }

    fn levers() -> Vec<Lever<Self>> {
        vec![
            ("attention in chunks", "none", |recipe| {
                recipe.model.attention_chunk = None;
            }),
            ("loss in chunks", "none", |recipe| {
                recipe.model.loss_chunk = None;
            }),
        ]
    }

    fn blank(recipe: &Recipe<Self>, _facts: &TextFacts, device: &Device) -> Tokens {
        let (batch, context) = (recipe.train.batch, recipe.data.context);
        Tokens {
            inputs: Tensor::zeros([batch, context], (device, DType::I32)),
            targets: Tensor::zeros([batch, context], (device, DType::I32)),
            reset: vec![false; batch],
            counted: batch * context,
        }
    }
}
