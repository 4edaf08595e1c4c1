//! Command-line flags of a training run; each overrides its key of the recipe.

use std::path::PathBuf;

use clap::Args;
use leanburn_levers::{CheckpointPolicy, Offload};
use leanburn_models::{Depth, Stem};

use crate::recipe::LossScaleRecipe;
use crate::{Backend, OptimizerKind, Recipe, TrainError};

/// Flags over a recipe.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// Recipe to start from (TOML); the flags below override its keys.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Images of one micro-batch.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Height and width of the images, in pixels (8 to 4096).
    #[arg(long, value_name = "PIXELS")]
    pub image_size: Option<usize>,
    /// Passes over the training images.
    #[arg(long, value_name = "N")]
    pub epochs: Option<usize>,
    /// Stop after this many updates.
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// auto (bf16 where the device has it, else f16, else fp32), fp32, f16, bf16, or a policy such
    /// as params=f32,compute=f16,output=f32. Master weights are always f32.
    #[arg(long, value_name = "POLICY")]
    pub precision: Option<String>,
    /// auto (dynamic for f16, none otherwise), none, dynamic, or a fixed factor such as 1024.
    #[arg(long, value_name = "SCALE")]
    pub loss_scale: Option<String>,
    /// What the backward recomputes instead of finding it kept: none, cheap (norms and activations),
    /// every-block, every:N (segments of N blocks), sqrt, or one of the last three with +cheap. Loss
    /// and gradients stay as they are; docs/checkpointing.md has memory and time of each.
    #[arg(long, value_name = "POLICY")]
    pub checkpoint: Option<CheckpointPolicy>,
    /// Where the inputs of recomputed blocks wait for the backward: none (on the device) or host.
    #[arg(long, value_name = "PLACE")]
    pub offload: Option<Offload>,
    /// Micro-batches of one update: the gradient of N x batch images in the memory of one batch.
    /// BatchNorm still sees single micro-batches.
    #[arg(long, value_name = "N")]
    pub accumulate: Option<usize>,
    /// Images of one update, a multiple of the batch; sets --accumulate.
    #[arg(long, value_name = "N", conflicts_with = "accumulate")]
    pub global_batch: Option<usize>,
    /// Largest learning rate (above 0, at most 1).
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// sgd (momentum 0.9), adamw or lion.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<OptimizerKind>,
    /// ResNet depth: 18, 34, 50, 101 or 152.
    #[arg(long, value_name = "LAYERS")]
    pub depth: Option<Depth>,
    /// First layers: imagenet (7x7 stride 2, max-pool) or small (3x3 stride 1, for images of 32 pixels
    /// and less); by default small up to 16 pixels.
    #[arg(long, value_name = "STEM", value_parser = parse_stem)]
    pub stem: Option<Stem>,
    /// digits, synthetic, or a folder with train/CLASS/*.jpg and val/CLASS/*.jpg (jpeg, png, bmp, webp).
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Stop at the first unreadable image instead of skipping it.
    #[arg(long)]
    pub strict_data: bool,
    /// Threads that decode images.
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// torchvision state dict to start from (.safetensors or .pth).
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Leave the classifier of --weights out and train a new one (another number of classes).
    #[arg(long)]
    pub new_head: bool,
    /// auto, flex (CPU), wgpu, vulkan or cuda.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
    /// Seed of weights, data order and views.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Folder for recipe.toml, metrics.csv, report.json and checkpoints [default: runs/last, or the
    /// folder of the run that --resume goes on with]. A new run replaces an older one there.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Go on from the newest checkpoint of a run's folder, or from one checkpoint file, with the
    /// recipe of that run; other flags override its keys.
    #[arg(long, value_name = "PATH", conflicts_with = "config")]
    pub resume: Option<PathBuf>,
    /// With --resume DIR: if the newest checkpoint is broken, use the newest good one before it.
    #[arg(long, requires = "resume")]
    pub resume_previous: bool,
    /// Print one JSON object on stdout at the end; progress stays on stderr.
    #[arg(long)]
    pub json: bool,
}

fn parse_stem(text: &str) -> Result<Stem, String> {
    match text {
        "imagenet" => Ok(Stem::Imagenet),
        "small" => Ok(Stem::Small),
        _ => Err(format!("unknown stem '{text}': use imagenet or small")),
    }
}

impl RunArgs {
    /// Where the run writes.
    pub fn output(&self) -> PathBuf {
        let of_resumed = |path: &PathBuf| match path.is_file() {
            // RUN/checkpoints/update-N.run
            true => path.ancestors().nth(2).map(PathBuf::from),
            false => Some(path.clone()),
        };
        self.output
            .clone()
            .or_else(|| self.resume.as_ref().and_then(of_resumed))
            .unwrap_or_else(|| "runs/last".into())
    }

    /// The recipe that the flags amount to, checked.
    pub fn recipe(&self) -> Result<Recipe, TrainError> {
        self.recipe_over(match &self.config {
            Some(path) => Recipe::load(path)?,
            None => Recipe::default(),
        })
    }

    /// The flags over another recipe, such as that of a saved run.
    pub fn recipe_over(&self, mut recipe: Recipe) -> Result<Recipe, TrainError> {
        set(&mut recipe.backend, self.backend);
        set(&mut recipe.checkpoint, self.checkpoint.clone());
        set(&mut recipe.offload, self.offload);
        set(&mut recipe.train.batch, self.batch);
        set(&mut recipe.train.epochs, self.epochs);
        set(&mut recipe.train.accumulate, self.accumulate);
        if let Some(global) = self.global_batch {
            let batch = recipe.train.batch;
            if batch == 0 || global == 0 || global % batch != 0 {
                return Err(TrainError::Recipe(format!(
                    "global-batch {global} is no multiple of batch {batch}"
                )));
            }
            recipe.train.accumulate = global / batch;
        }
        set(&mut recipe.train.seed, self.seed);
        set(&mut recipe.data.image_size, self.image_size);
        set(&mut recipe.data.source, self.data.clone());
        set(&mut recipe.data.workers, self.workers);
        set(&mut recipe.optimizer.lr, self.lr);
        let other = self.optimizer.filter(|name| *name != recipe.optimizer.name);
        if self.resume.is_some() && other.is_some() {
            return Err(TrainError::Recipe(format!(
                "--optimizer: the saved run has the state of {}, which no other optimizer can take up",
                recipe.optimizer.name
            )));
        }
        set(&mut recipe.optimizer.name, self.optimizer);
        set(&mut recipe.model.depth, self.depth);
        set(&mut recipe.precision.policy, self.precision.clone());
        let scale = self.loss_scale.clone().map(|text| match text.parse() {
            Ok(number) => LossScaleRecipe::Number(number),
            Err(_) => LossScaleRecipe::Word(text),
        });
        set(&mut recipe.precision.loss_scale, scale);
        recipe.train.steps = self.steps.or(recipe.train.steps);
        recipe.model.stem = self.stem.or(recipe.model.stem);
        recipe.model.weights = self.weights.clone().or(recipe.model.weights);
        recipe.model.new_head |= self.new_head;
        recipe.data.strict |= self.strict_data;
        recipe.validate()?;
        Ok(recipe)
    }
}

fn set<T>(key: &mut T, flag: Option<T>) {
    if let Some(value) = flag {
        *key = value;
    }
}
