//! Command-line flags that every run has; each overrides its key of the recipe.

use std::path::PathBuf;

use clap::Args;
use leanburn_levers::{CheckpointPolicy, Offload};
use leanburn_memory::Bytes;

use crate::recipe::LossScaleRecipe;
use crate::saved::{self, Saved};
use crate::{Backend, OptimizerKind, Recipe, Task, TrainError};

/// Flags of one task, over the recipe's `[model]` and `[data]`; a program flattens them beside [`RunArgs`].
pub trait Flags<T: Task> {
    /// Overrides the keys that were given.
    fn apply(&self, recipe: &mut Recipe<T>);
}

/// Flags over a recipe.
#[derive(Args, Clone, Debug, Default)]
pub struct RunArgs {
    /// Recipe to start from (TOML); the flags below override its keys.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What to learn from. Images: digits (ships with leanburn), synthetic, or a folder with train/CLASS/*.jpg and
    /// val/CLASS/*.jpg (jpeg, png, bmp, webp). Text: jargon (the Jargon File, which ships with leanburn, byte by
    /// byte), or a token file.
    #[arg(long, value_name = "DATA")]
    pub data: Option<String>,
    /// Weights to start from: a torchvision state dict (.safetensors or .pth), or Hugging Face's names
    /// (.safetensors).
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Samples (images or sequences) of one micro-batch.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// Passes over the training data.
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
    /// every-block, every:N (segments of N blocks), sqrt, one of the last three with +cheap, or schedule:PIECES
    /// as `leanburn plan` writes it. Loss
    /// and gradients stay as they are; docs/checkpointing.md has memory and time of each.
    #[arg(long, value_name = "POLICY")]
    pub checkpoint: Option<CheckpointPolicy>,
    /// Where the inputs of recomputed blocks wait for the backward: none (on the device) or host.
    #[arg(long, value_name = "PLACE")]
    pub offload: Option<Offload>,
    /// Micro-batches of one update: the gradient of N x batch samples in the memory of one batch.
    /// BatchNorm still sees single micro-batches.
    #[arg(long, value_name = "N")]
    pub accumulate: Option<usize>,
    /// Samples of one update, a multiple of the batch; sets --accumulate.
    #[arg(long, value_name = "N", conflicts_with = "accumulate")]
    pub global_batch: Option<usize>,
    /// Largest learning rate (above 0, at most 1).
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// sgd (momentum 0.9), adamw or lion.
    #[arg(long, value_name = "NAME")]
    pub optimizer: Option<OptimizerKind>,
    /// auto, flex (CPU), wgpu, vulkan, metal, cuda or rocm, where it matters with a device's number in
    /// `leanburn devices`: cuda:1, or wgpu:cpu for the software adapter.
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
    /// The memory that a step may take, such as 8GiB: levers are pulled at the start, cheapest first, until it
    /// fits.
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<Bytes>,
    /// Start even where the step is predicted not to fit into the memory that is free.
    #[arg(long)]
    pub force: bool,
    /// Print one JSON object on stdout at the end; progress stays on stderr.
    #[arg(long)]
    pub json: bool,
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

    /// The recipe that all flags amount to, checked, and the saved run that it goes on from.
    pub fn start<T: Task>(
        &self,
        flags: &impl Flags<T>,
    ) -> Result<(Recipe<T>, Option<Saved<T>>), TrainError> {
        let note = |error: &TrainError| eprintln!("skipping {error}");
        let resumed = match &self.resume {
            Some(path) => Some(saved::open(path, self.resume_previous, note)?),
            None => None,
        };
        // A resumed run goes on with its own recipe.
        let mut recipe = match (&resumed, &self.config) {
            (Some(saved), _) => saved.state.recipe.clone(),
            (None, Some(path)) => Recipe::load(path)?,
            (None, None) => Recipe::default(),
        };
        flags.apply(&mut recipe);
        self.apply(&mut recipe)?;
        recipe.validate()?;
        Ok((recipe, resumed))
    }

    fn apply<T: Task>(&self, recipe: &mut Recipe<T>) -> Result<(), TrainError> {
        if let Some(data) = &self.data {
            *T::source(recipe).ok_or_else(|| missing("--data"))? = data.clone();
        }
        if let Some(weights) = &self.weights {
            *T::weights(recipe).ok_or_else(|| missing("--weights"))? = Some(weights.clone());
        }
        set(&mut recipe.backend, self.backend);
        set(&mut recipe.checkpoint, self.checkpoint.clone());
        set(&mut recipe.offload, self.offload);
        recipe.memory = self.memory.or(recipe.memory);
        let train = &mut recipe.train;
        set(&mut train.batch, self.batch);
        set(&mut train.epochs, self.epochs);
        set(&mut train.accumulate, self.accumulate);
        set(&mut train.seed, self.seed);
        train.steps = self.steps.or(train.steps);
        if let Some(global) = self.global_batch {
            let batch = train.batch;
            if batch == 0 || global == 0 || global % batch != 0 {
                return Err(TrainError::Recipe(format!(
                    "global-batch {global} is no multiple of batch {batch}"
                )));
            }
            train.accumulate = global / batch;
        }
        let optimizer = &mut recipe.optimizer;
        set(&mut optimizer.lr, self.lr);
        let other = self.optimizer.is_some_and(|name| name != optimizer.name);
        if self.resume.is_some() && other {
            return Err(TrainError::Recipe(format!(
                "--optimizer: the saved run has the state of {}, which no other optimizer can take up",
                optimizer.name
            )));
        }
        set(&mut optimizer.name, self.optimizer);
        set(&mut recipe.precision.policy, self.precision.clone());
        let scale = self.loss_scale.clone().map(|text| match text.parse() {
            Ok(number) => LossScaleRecipe::Number(number),
            Err(_) => LossScaleRecipe::Word(text),
        });
        set(&mut recipe.precision.loss_scale, scale);
        Ok(())
    }
}

fn missing(flag: &str) -> TrainError {
    TrainError::Recipe(format!("{flag}: this kind of training has no such key"))
}

/// Overrides a key where its flag was given.
pub fn set<V>(key: &mut V, flag: Option<V>) {
    if let Some(value) = flag {
        *key = value;
    }
}
