//! The recipe's tables for images.

use std::path::PathBuf;

use leanburn_models::{Depth, ResNetConfig, Stem};
use serde::{Deserialize, Serialize};

use super::Images;
use crate::Recipe;

/// `[model]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResNetRecipe {
    /// 18, 34, 50, 101 or 152.
    pub depth: Depth,
    /// `imagenet` or `small`; left out, small for images of up to 16 pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stem: Option<Stem>,
    /// Channels of the first stage.
    pub width: usize,
    /// Blocks start as the identity.
    pub zero_init_residual: bool,
    /// A torchvision state dict to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// Leave the classifier of the weights out and train a new one.
    pub new_head: bool,
}

impl Default for ResNetRecipe {
    fn default() -> Self {
        Self {
            depth: Depth::R50,
            stem: None,
            width: 64,
            zero_init_residual: true,
            weights: None,
            new_head: false,
        }
    }
}

/// `[data]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ImageData {
    /// `digits`, `synthetic`, or a folder with `train/<class>/*` and `val/<class>/*`.
    pub source: String,
    /// Draws other validation images of the digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_seed: Option<u64>,
    /// Height and width of the images, pixels.
    pub image_size: usize,
    /// Random views of the training images.
    pub augment: bool,
    /// Threads that decode images; 0 decodes between the steps.
    pub workers: usize,
    /// Stop at the first unreadable file instead of skipping it.
    pub strict: bool,
}

impl Default for ImageData {
    fn default() -> Self {
        Self {
            source: "digits".into(),
            split_seed: None,
            image_size: 8,
            augment: false,
            workers: 1,
            strict: false,
        }
    }
}

impl Recipe<Images> {
    /// The network for a number of classes.
    pub fn resnet(&self, classes: usize) -> ResNetConfig {
        let small = self.data.image_size <= 16;
        let fitting = if small { Stem::Small } else { Stem::Imagenet };
        ResNetConfig::new(self.model.depth, classes)
            .with_stem(self.model.stem.unwrap_or(fitting))
            .with_width(self.model.width)
            .with_zero_init_residual(self.model.zero_init_residual)
    }
}
