//! The recipe's tables for text.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use leanburn_data::tokens::VAL_FRACTION;
use leanburn_models::transformer::Arch;
use leanburn_models::transformer::gpt::Preset;
use leanburn_models::{EncoderConfig, GptConfig};
use serde::{Deserialize, Serialize};

use super::Text;
use crate::recipe::within;
use crate::{Recipe, TrainError};

/// A network by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Size {
    /// A decoder.
    Gpt(Preset),
    /// BERT base: 12 layers of width 768.
    BertBase,
}

impl Default for Size {
    fn default() -> Self {
        Self::Gpt(Preset::Tiny)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "bert-base" => Ok(Self::BertBase),
            text => match text.parse() {
                Ok(preset) => Ok(Self::Gpt(preset)),
                Err(error) => Err(format!("{error}, bert-base")),
            },
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Gpt(Preset::Llama7b) => f.write_str("llama-7b"),
            Self::Gpt(preset) => write!(f, "gpt-{preset}"),
            Self::BertBase => f.write_str("bert-base"),
        }
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        match size {
            Size::Gpt(preset) => preset.to_string(),
            Size::BertBase => "bert-base".into(),
        }
    }
}

/// `[model]`
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransformerRecipe {
    /// `tiny`, `small`, `medium`, `large`, `xl` (GPT-2), `llama-7b` or `bert-base`; the keys below change its
    /// sizes.
    pub preset: Size,
    /// Blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<usize>,
    /// Attention heads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<usize>,
    /// Width of the residual stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Width inside the feed-forward network; left out, by the family's rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<usize>,
    /// Distinct tokens; left out, as many as the data have (and for an encoder one more, the mask).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<usize>,
    /// Probability that an activation is dropped in training.
    pub dropout: f64,
    /// Label smoothing.
    pub smoothing: f64,
    /// Queries and keys of an attention chunk; 0 takes all at once, left out 256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_chunk: Option<usize>,
    /// Tokens whose logits exist at once; 0 takes all, left out as many as make 8 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_chunk: Option<usize>,
    /// Weights under Hugging Face's names to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
}

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TextData {
    /// `jargon` (ships with leanburn, a token is a byte), or a token file.
    pub source: String,
    /// The `tokenizer.json` that made the token file, to read prompts and print samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<PathBuf>,
    /// Tokens of a sequence.
    pub context: usize,
    /// The last part of the tokens, for validation.
    pub val_fraction: f64,
    /// Walk through the text in order and remember the keys and values of so many earlier tokens; 0 takes
    /// independent windows in random order. Decoders only; with learned positions it does not work.
    pub carry: usize,
    /// Token that ends a document, where `carry` starts anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<u32>,
    /// Part of the tokens that an encoder has to fill in.
    pub masked: f64,
    /// The token that stands for a masked one; left out, the last of the vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mask_token: Option<usize>,
}

impl Default for TextData {
    fn default() -> Self {
        Self {
            source: "jargon".into(),
            tokenizer: None,
            context: 256,
            val_fraction: VAL_FRACTION,
            carry: 0,
            separator: None,
            masked: 0.15,
            mask_token: None,
        }
    }
}

/// What to build.
pub(super) enum Config {
    Gpt(GptConfig),
    Encoder(EncoderConfig),
}

impl Config {
    pub fn vocabulary(&self) -> usize {
        match self {
            Self::Gpt(config) => config.vocabulary,
            Self::Encoder(config) => config.vocabulary,
        }
    }
}

impl Recipe<Text> {
    /// The network for data of so many distinct tokens.
    pub(super) fn config(&self, tokens: usize) -> Config {
        let model = &self.model;
        // Published weights have a row for each of their positions.
        let context = |base: usize| match model.weights {
            Some(_) => base.max(self.data.context),
            None => self.data.context,
        };
        match model.preset {
            Size::Gpt(preset) => {
                let base = preset.config();
                let (layers, heads) = (
                    model.layers.unwrap_or(base.layers),
                    model.heads.unwrap_or(base.heads),
                );
                let width = model.width.unwrap_or(base.width);
                let mut config = match base.arch {
                    Arch::Gpt2 => GptConfig::gpt2(layers, heads, width),
                    Arch::Llama => GptConfig::llama(layers, heads, width),
                };
                config.hidden = model.hidden.unwrap_or(config.hidden);
                let config = config
                    .with_vocabulary(model.vocabulary.unwrap_or(tokens))
                    .with_context(context(base.context))
                    .with_dropout(model.dropout)
                    .with_tied(base.tied);
                Config::Gpt(config)
            }
            Size::BertBase => {
                let base = EncoderConfig::base();
                let mut config = EncoderConfig::new(
                    model.layers.unwrap_or(base.layers),
                    model.heads.unwrap_or(base.heads),
                    model.width.unwrap_or(base.width),
                );
                config.hidden = model.hidden.unwrap_or(config.hidden);
                let config = config
                    .with_vocabulary(model.vocabulary.unwrap_or(tokens + 1))
                    .with_context(context(base.context))
                    .with_dropout(model.dropout)
                    .with_masked_head();
                Config::Encoder(config)
            }
        }
    }

    pub(super) fn validate_sizes(&self) -> Result<(), TrainError> {
        let wrong = |text: &str| Err(TrainError::Recipe(text.into()));
        let carry = self.data.carry > 0;
        match self.config(2) {
            Config::Gpt(config) => {
                if carry && config.arch == Arch::Gpt2 {
                    return wrong(
                        "carry (data.carry) needs rotary positions, and GPT-2's are learned; use preset tiny or \
                         llama-7b, or carry = 0",
                    );
                }
                config.validate()?;
            }
            Config::Encoder(config) => {
                if carry {
                    return wrong(
                        "carry (data.carry) is for decoders; use carry = 0 with an encoder",
                    );
                }
                within(
                    self.data.masked > 0.0 && self.data.masked < 1.0,
                    "data.masked",
                    "a fraction, above 0 and below 1",
                )?;
                config.validate()?;
            }
        }
        Ok(())
    }
}
