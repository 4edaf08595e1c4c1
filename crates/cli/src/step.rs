//! Which step a command looks at: a recipe, and the flags over it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use leanburn_levers::{CheckpointPolicy, Offload};
use leanburn_train::args::Flags;
use leanburn_train::{Backend, ImageArgs, Images, Recipe, RunArgs, Task, Text, TextArgs};

use crate::Wrong;

/// Flags over a recipe, which are those of a training run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct StepArgs {
    /// Recipe (TOML); the flags below override its keys. Without one: the ResNet-50 of resnet_amp.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Samples (images or sequences) of one micro-batch.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Micro-batches of one update.
    #[arg(long, value_name = "N")]
    pub accumulate: Option<usize>,
    /// auto, fp32, f16, bf16, or a policy such as params=f32,compute=f16,output=f32.
    #[arg(long, value_name = "POLICY")]
    pub precision: Option<String>,
    /// none, cheap, every-block, every:N, sqrt, one of the last three with +cheap, or schedule:PIECES.
    #[arg(long, value_name = "POLICY")]
    pub checkpoint: Option<CheckpointPolicy>,
    /// Where the inputs of recomputed blocks wait: none (on the device) or host.
    #[arg(long, value_name = "PLACE")]
    pub offload: Option<Offload>,
    /// sgd, adamw or lion.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<String>,
    /// Height and width of the images, in pixels.
    #[arg(long, value_name = "PIXELS")]
    pub image_size: Option<usize>,
    /// Tokens of a sequence.
    #[arg(long, value_name = "N")]
    pub context: Option<usize>,
}

/// What a recipe trains on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Images,
    Text,
}

impl Kind {
    /// By the keys that only one of them has; images where none says otherwise.
    pub fn of(config: Option<&Path>) -> Result<Self> {
        let Some(path) = config else {
            return Ok(Self::Images);
        };
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let Some(kind) = Self::of_text(&text) else {
            // Told by the recipe's own reader, in a line.
            Recipe::<Images>::load(path)?;
            return Ok(Self::Images);
        };
        Ok(kind)
    }

    /// The same of a recipe's text; `None` where that is none.
    pub fn of_text(text: &str) -> Option<Self> {
        let table = toml::from_str::<toml::Table>(text).ok()?;
        let has = |table_name: &str, key: &str| {
            let table = table.get(table_name).and_then(toml::Value::as_table);
            table.is_some_and(|table| table.contains_key(key))
        };
        let is_text = has("model", "preset") || has("data", "context");
        Some(if is_text { Self::Text } else { Self::Images })
    }
}

impl StepArgs {
    /// What its recipe trains on.
    pub fn kind(&self) -> Result<Kind> {
        Kind::of(self.config.as_deref())
    }

    /// The recipe of images that it amounts to.
    pub fn images(&self, backend: Option<Backend>) -> Result<Recipe<Images>> {
        refuse("--context", "text", self.context.is_some())?;
        let flags = ImageArgs {
            image_size: self.image_size,
            ..ImageArgs::default()
        };
        self.recipe(&flags, backend)
    }

    /// The recipe of text that it amounts to.
    pub fn text(&self, backend: Option<Backend>) -> Result<Recipe<Text>> {
        refuse("--image-size", "images", self.image_size.is_some())?;
        let flags = TextArgs {
            context: self.context,
            ..TextArgs::default()
        };
        self.recipe(&flags, backend)
    }

    fn recipe<T: Task>(
        &self,
        flags: &impl Flags<T>,
        backend: Option<Backend>,
    ) -> Result<Recipe<T>> {
        let optimizer = self.optimizer.as_ref();
        let optimizer = optimizer.map(|name| name.parse().map_err(Wrong));
        let run = RunArgs {
            config: self.config.clone(),
            batch: self.batch,
            accumulate: self.accumulate,
            precision: self.precision.clone(),
            checkpoint: self.checkpoint.clone(),
            offload: self.offload,
            optimizer: optimizer.transpose()?,
            backend,
            ..RunArgs::default()
        };
        Ok(run.start(flags)?.0)
    }
}

/// A flag of the other kind of recipe.
pub fn refuse(flag: &str, kind: &str, given: bool) -> Result<()> {
    match given {
        true => Err(Wrong(format!("{flag} is for {kind}, and the recipe is not")).into()),
        false => Ok(()),
    }
}
