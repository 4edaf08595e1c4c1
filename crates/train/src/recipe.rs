//! A recipe: everything that decides what a run does, in one TOML file. Unknown keys are refused.

use std::fs;
use std::path::{Path, PathBuf};

use burn::tensor::Device;
use leanburn_levers::checkpoint::Segmentation;
use leanburn_levers::scaling::Dynamic;
use leanburn_levers::{CheckpointPolicy, LossScale, Offload, Policy, Precision};
use leanburn_models::{Depth, ResNetConfig, Stem};
use serde::{Deserialize, Serialize};

use crate::{Backend, OptimizerKind, Schedule, TrainError};

/// The whole recipe; every key has a default, which is the main job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recipe {
    /// Where to compute.
    pub backend: Backend,
    /// What the backward recomputes: `none`, `cheap`, `every-block`, `every:2`, `sqrt`, or one of the
    /// last three with `+cheap`.
    pub checkpoint: CheckpointPolicy,
    /// Where the inputs of recomputed blocks wait: `none` (on the device) or `host`.
    pub offload: Offload,
    /// The network.
    pub model: ModelRecipe,
    /// The images.
    pub data: DataRecipe,
    /// Batches, epochs, seed.
    pub train: TrainRecipe,
    /// Dtypes and loss scale.
    pub precision: PrecisionRecipe,
    /// Optimizer and learning rate.
    pub optimizer: OptimizerRecipe,
    /// How the learning rate moves.
    pub schedule: Schedule,
}

/// `[model]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelRecipe {
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

impl Default for ModelRecipe {
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
pub struct DataRecipe {
    /// `digits`, `synthetic`, or a folder with `train/<class>/*` and `val/<class>/*`.
    pub source: String,
    /// Height and width of the images, pixels.
    pub image_size: usize,
    /// Random views of the training images.
    pub augment: bool,
    /// Threads that decode images; 0 decodes between the steps.
    pub workers: usize,
    /// Stop at the first unreadable file instead of skipping it.
    pub strict: bool,
}

impl Default for DataRecipe {
    fn default() -> Self {
        Self {
            source: "digits".into(),
            image_size: 8,
            augment: false,
            workers: 1,
            strict: false,
        }
    }
}

/// `[train]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainRecipe {
    /// Images of a micro-batch.
    pub batch: usize,
    /// Micro-batches of an update.
    pub accumulate: usize,
    /// Passes over the data.
    pub epochs: usize,
    /// Updates after which to stop, whatever the epoch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Decides weights, order of the data, views and dropout.
    pub seed: u64,
    /// Save every so many updates, besides the end of each epoch; 0 only there.
    pub save_every: u64,
}

impl Default for TrainRecipe {
    fn default() -> Self {
        Self {
            batch: 64,
            accumulate: 1,
            epochs: 4,
            steps: None,
            seed: 0,
            save_every: 0,
        }
    }
}

impl TrainRecipe {
    /// What one update is made of, in words; with BatchNorm a window is not one big batch.
    pub fn window(&self) -> String {
        match self.accumulate {
            1 => format!("{} images an update", self.batch),
            k => format!(
                "{k} micro-batches of {} images an update (BatchNorm sees {} at a time, not {})",
                self.batch,
                self.batch,
                self.batch.saturating_mul(k),
            ),
        }
    }
}

/// `[precision]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrecisionRecipe {
    /// `auto`, `fp32`, `f16`, `bf16`, or `params=f32,compute=bf16,output=f32`.
    pub policy: String,
    /// `auto`, `none`, `dynamic`, a number, or a table with the rule of a dynamic scale.
    pub loss_scale: LossScaleRecipe,
}

impl Default for PrecisionRecipe {
    fn default() -> Self {
        Self {
            policy: "auto".into(),
            loss_scale: LossScaleRecipe::default(),
        }
    }
}

/// A loss scale as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LossScaleRecipe {
    /// A static scale.
    Number(f32),
    /// `auto`, `none` or `dynamic`.
    Word(String),
    /// The rule of a dynamic scale.
    Rule(Dynamic),
}

impl Default for LossScaleRecipe {
    fn default() -> Self {
        Self::Word("auto".into())
    }
}

impl LossScaleRecipe {
    /// `auto` is dynamic for f16, whose range is small, and none otherwise.
    pub fn resolve(&self, policy: Policy) -> Result<LossScale, TrainError> {
        let scale = match self {
            Self::Number(scale) => LossScale::Static(*scale),
            Self::Rule(rule) => LossScale::Dynamic(*rule),
            Self::Word(word) if word == "auto" => match policy.compute {
                Precision::F16 => LossScale::Dynamic(Dynamic::default()),
                _ => LossScale::None,
            },
            Self::Word(word) => word.parse()?,
        };
        Ok(scale.validate()?)
    }
}

/// `[optimizer]`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerRecipe {
    /// `sgd`, `adamw` or `lion`.
    pub name: OptimizerKind,
    /// Largest learning rate.
    pub lr: f64,
    /// Pull towards zero, on matrices and filters only.
    pub weight_decay: f64,
    /// Largest global gradient norm; 0 does not clip.
    pub clip_norm: f64,
}

impl Default for OptimizerRecipe {
    fn default() -> Self {
        Self {
            name: OptimizerKind::AdamW,
            lr: 2e-3,
            weight_decay: 1e-2,
            clip_norm: 5.0,
        }
    }
}

impl Recipe {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, TrainError> {
        let text = fs::read_to_string(path).map_err(TrainError::io(path))?;
        toml::from_str(&text).map_err(|cause| TrainError::RecipeFile {
            path: path.to_owned(),
            cause: one_line(&text, &cause),
        })
    }

    /// Writes the resolved recipe beside the results.
    pub fn save(&self, path: &Path) -> Result<(), TrainError> {
        let text =
            toml::to_string_pretty(self).map_err(|cause| TrainError::Recipe(cause.to_string()))?;
        fs::write(path, text).map_err(TrainError::io(path))
    }

    /// Checks every number; names the key and its range.
    pub fn validate(&self) -> Result<(), TrainError> {
        let within = |ok: bool, key: &str, range: &str| match ok {
            true => Ok(()),
            false => Err(TrainError::Recipe(format!("{key} must be {range}"))),
        };
        within(self.train.batch > 0, "batch (train.batch)", "at least 1")?;
        within(
            self.train.accumulate > 0,
            "accumulate (train.accumulate)",
            "at least 1",
        )?;
        within(self.train.epochs > 0, "epochs (train.epochs)", "at least 1")?;
        within(
            self.train.steps != Some(0),
            "steps (train.steps)",
            "at least 1",
        )?;
        within(self.model.width > 0, "width (model.width)", "at least 1")?;
        let size = self.data.image_size;
        within(
            (8..=4096).contains(&size),
            "image-size (data.image_size)",
            "8 to 4096 pixels",
        )?;
        within(self.data.workers <= 64, "workers (data.workers)", "0 to 64")?;
        let o = &self.optimizer;
        within(
            o.lr > 0.0 && o.lr <= 1.0,
            "lr (optimizer.lr)",
            "above 0 and at most 1",
        )?;
        within(
            (0.0..=1.0).contains(&o.weight_decay),
            "optimizer.weight_decay",
            "0 to 1",
        )?;
        within(
            o.clip_norm >= 0.0 && o.clip_norm.is_finite(),
            "optimizer.clip_norm",
            "0 (off) or a positive number",
        )?;
        within(
            (0.0..1.0).contains(&self.schedule.warmup),
            "schedule.warmup",
            "a fraction, 0 to below 1",
        )?;
        if self.precision.policy != "auto" {
            self.precision.policy.parse::<Policy>()?;
        }
        if self.offload == Offload::Host && self.checkpoint.segments == Segmentation::None {
            return Err(TrainError::Recipe(format!(
                "offload = host moves the inputs of recomputed blocks, and checkpoint = {} recomputes \
                 none; use every-block, every:N or sqrt",
                self.checkpoint
            )));
        }
        Ok(())
    }

    /// The dtypes on a device.
    pub fn policy(&self, device: &Device) -> Result<Policy, TrainError> {
        Ok(Policy::resolve(&self.precision.policy, device)?)
    }

    /// The network for a number of classes.
    pub fn resnet(&self, classes: usize) -> ResNetConfig {
        let small = self.data.image_size <= 16;
        let fitting = if small { Stem::Small } else { Stem::Imagenet };
        ResNetConfig::new(self.model.depth, classes)
            .with_stem(self.model.stem.unwrap_or(fitting))
            .with_width(self.model.width)
            .with_zero_init_residual(self.model.zero_init_residual)
    }

    /// Updates of a run over this many micro-batches an epoch.
    pub fn updates(&self, micro_batches: usize) -> u64 {
        let an_epoch = micro_batches.div_ceil(self.train.accumulate) as u64;
        let all = an_epoch.saturating_mul(self.train.epochs as u64);
        self.train.steps.map_or(all, |steps| steps.min(all)).max(1)
    }
}

fn one_line(text: &str, error: &toml::de::Error) -> String {
    let line = error
        .span()
        .map(|span| text[..span.start].lines().count().max(1));
    let message = error.message().replace('\n', " ");
    match line {
        Some(line) => format!("line {line}: {message}"),
        None => message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_round_trip() {
        let recipe = Recipe::default();
        recipe.validate().unwrap();
        let text = toml::to_string_pretty(&recipe).unwrap();
        assert_eq!(toml::from_str::<Recipe>(&text).unwrap(), recipe);
    }

    #[test]
    fn unknown_keys_are_refused() {
        for text in [
            "colour = 1",
            "[train]\nbatches = 3",
            "[schedule]\nwarm_up = 0.1",
        ] {
            let error = toml::from_str::<Recipe>(text).unwrap_err().to_string();
            assert!(error.contains("unknown field"), "{error}");
        }
    }

    #[test]
    fn checkpointing_is_read_and_checked() {
        let recipe: Recipe =
            toml::from_str("checkpoint = \"every:2+cheap\"\noffload = \"host\"").unwrap();
        assert_eq!(recipe.checkpoint.segments, Segmentation::Every(2));
        assert!(recipe.checkpoint.cheap);
        recipe.validate().unwrap();
        let error = toml::from_str::<Recipe>("checkpoint = \"all\"").unwrap_err();
        assert!(error.to_string().contains("every-block"), "{error}");
        let nothing_to_park: Recipe = toml::from_str("offload = \"host\"").unwrap();
        assert!(nothing_to_park.validate().unwrap_err().is_wrong_use());
    }

    /// Trap B07: an accumulation of 0 would never update.
    #[test]
    fn out_of_range_is_refused_by_key() {
        let mut recipe = Recipe::default();
        recipe.train.accumulate = 0;
        let error = recipe.validate().unwrap_err();
        assert!(
            error.is_wrong_use() && error.to_string().contains("accumulate"),
            "{error}"
        );
        let mut recipe = Recipe::default();
        recipe.optimizer.lr = f64::NAN;
        assert!(recipe.validate().unwrap_err().to_string().contains("lr"));
    }

    /// Trap B08: the schedule counts updates, not micro-batches.
    #[test]
    fn updates_count_windows() {
        let mut recipe = Recipe::default();
        recipe.train.accumulate = 4;
        recipe.train.epochs = 2;
        assert_eq!(recipe.updates(7), 4);
        recipe.train.steps = Some(3);
        assert_eq!(recipe.updates(7), 3);
    }

    #[test]
    fn loss_scale_follows_the_precision() {
        let auto = PrecisionRecipe::default().loss_scale;
        assert_eq!(
            auto.resolve(Policy::computing(Precision::Bf16)).unwrap(),
            LossScale::None
        );
        let f16 = auto.resolve(Policy::computing(Precision::F16)).unwrap();
        assert_eq!(f16, LossScale::Dynamic(Dynamic::default()));
        let recipe: Recipe = toml::from_str("[precision]\nloss_scale = { init = 1024.0 }").unwrap();
        let LossScale::Dynamic(rule) = recipe.precision.loss_scale.resolve(Policy::FP32).unwrap()
        else {
            panic!("a table is a dynamic rule");
        };
        assert_eq!((rule.init, rule.interval), (1024.0, 2000));
    }
}
