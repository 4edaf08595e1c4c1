//! Epochs over the data: windows of micro-batches, evaluation, saving, and a clean end.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use burn::tensor::Device;
use leanburn_data::{Batch, Digits, ImageFolder, Loader, LoaderConfig, Source, Split, Synthetic};

use crate::report::Metrics;
use crate::saved::{self, State};
use crate::{Job, Progress, Recipe, Score, TrainError, Trainable, Trainer, interrupt};

/// Training and validation images.
pub struct Loaders {
    /// In a new random order each epoch.
    pub train: Loader,
    /// In a fixed order, evaluation views.
    pub val: Loader,
}

impl Loaders {
    /// Opens what the recipe names.
    pub fn open(recipe: &Recipe) -> Result<Self, TrainError> {
        let data = &recipe.data;
        let size = data.image_size;
        let (train, val): (Arc<dyn Source>, Arc<dyn Source>) = match data.source.as_str() {
            "digits" => (
                Arc::new(Digits::load(Split::Train, size)?),
                Arc::new(Digits::load(Split::Val, size)?),
            ),
            "synthetic" => (
                Arc::new(Synthetic::new(1024, 10, size, recipe.train.seed)),
                Arc::new(Synthetic::new(
                    256,
                    10,
                    size,
                    recipe.train.seed.wrapping_add(1),
                )),
            ),
            folder => {
                let (train, val) = ImageFolder::open(Path::new(folder), size)?;
                (Arc::new(train), Arc::new(val))
            }
        };
        let config = |training: bool| LoaderConfig {
            batch: recipe.train.batch,
            workers: data.workers,
            seed: recipe.train.seed,
            shuffle: training,
            augment: training && data.augment,
            strict: data.strict,
        };
        Ok(Self {
            train: Loader::new(train, config(true)),
            val: Loader::new(val, config(false)),
        })
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.train.source().classes().len()
    }

    /// Files skipped so far.
    pub fn unreadable(&self) -> Vec<String> {
        let mut names = self.train.unreadable();
        names.extend(self.val.unreadable());
        names
    }
}

/// Where [`fit`] begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Start {
    /// Epoch, from 0.
    pub epoch: usize,
    /// Samples of it that are behind.
    pub samples: usize,
}

/// What [`fit`] came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// On all validation images, at the end; not taken where Ctrl-C ended the run.
    pub score: Option<Score>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
}

/// Trains to the end of the recipe; saves into `output` at each epoch's end, and on Ctrl-C.
pub fn fit<M: Trainable<Batch = Batch>>(
    trainer: &mut Trainer<M>,
    job: &Job,
    output: &Path,
    start: Start,
    progress: &mut Progress,
) -> Result<Outcome, TrainError> {
    let (recipe, loaders, device) = (&job.recipe, &job.loaders, &job.device());
    fs::create_dir_all(output).map_err(TrainError::io(output))?;
    recipe.save(&output.join("recipe.toml"))?;
    let metrics_path = output.join("metrics.csv");
    let mut metrics = Metrics::open(&metrics_path, trainer.tried() > 0)?;
    let checkpoints = output.join("checkpoints");
    if trainer.tried() == 0 {
        saved::clear(&checkpoints)?;
    }
    let total = job.updates;
    let mut score = None;

    for epoch in start.epoch..recipe.train.epochs {
        if trainer.tried() >= total {
            break;
        }
        let mut samples = if epoch == start.epoch {
            start.samples
        } else {
            0
        };
        let (mut losses, mut updates, mut lr) = (0.0, 0u64, 0.0);
        let mut window_samples = 0;
        let mut batches = loaders.train.epoch(epoch, samples).peekable();
        while trainer.tried() < total {
            let Some(batch) = batches.next().transpose()? else {
                break;
            };
            samples += batch.visited;
            window_samples += batch.len();
            trainer.micro_step(batch.into_device(device));
            // The last window of an epoch may be short; it is applied, and weighs by its samples.
            if trainer.waiting() < recipe.train.accumulate && batches.peek().is_some() {
                continue;
            }
            let update = trainer.update()?;
            if update.loss.is_finite() {
                (losses, updates, lr) = (losses + update.loss, updates + 1, update.lr);
            }
            let peak = trainer.measurement().map(|measured| measured.peak);
            let skipped = trainer.scaler().skipped();
            progress.update(
                trainer.tried(),
                window_samples,
                &update,
                skipped,
                trainer.meter(),
                peak,
            );
            window_samples = 0;
            let every = recipe.train.save_every;
            if interrupt::requested() || (every > 0 && trainer.tried().is_multiple_of(every)) {
                save(trainer, recipe, (epoch, samples), &checkpoints)?;
            }
            if interrupt::requested() {
                drop(batches);
                progress.say("saved; go on with --resume");
                return Ok(Outcome {
                    score: None,
                    interrupted: true,
                });
            }
        }
        let ended = batches.peek().is_none();
        drop(batches);
        // Before the evaluation, whose failure must not cost the epoch.
        let position = if ended {
            (epoch + 1, 0)
        } else {
            (epoch, samples)
        };
        save(trainer, recipe, position, &checkpoints)?;
        let result = evaluate(trainer.model(), &loaders.val, device)?;
        let train_loss = if updates > 0 {
            losses / updates as f64
        } else {
            f64::NAN
        };
        progress.say(&format!(
            "epoch {} of {}: training loss {train_loss:.4}, validation loss {:.4}, accuracy {:.2} %",
            epoch + 1,
            recipe.train.epochs,
            result.loss(),
            100.0 * result.accuracy()
        ));
        let peak = trainer
            .measurement()
            .map(|measured| measured.peak.0.to_string());
        metrics.line(
            &metrics_path,
            &[
                (epoch + 1).to_string(),
                trainer.tried().to_string(),
                trainer.scaler().skipped().to_string(),
                lr.to_string(),
                train_loss.to_string(),
                result.loss().to_string(),
                result.accuracy().to_string(),
                progress.items_per_second().to_string(),
                peak.unwrap_or_default(),
            ],
        )?;
        score = Some(result);
    }
    let score = match score {
        Some(score) => score,
        None => evaluate(trainer.model(), &loaders.val, device)?,
    };
    Ok(Outcome {
        score: Some(score),
        interrupted: false,
    })
}

fn save<M: Trainable>(
    trainer: &Trainer<M>,
    recipe: &Recipe,
    (epoch, samples): (usize, usize),
    folder: &Path,
) -> Result<(), TrainError> {
    let state = State {
        recipe: recipe.clone(),
        epoch,
        samples,
        applied: trainer.applied(),
        tried: trainer.tried(),
        scaler: trainer.scaler().clone(),
    };
    saved::save(folder, &state, trainer.model(), trainer.optimizer()).map(|_| ())
}

/// Scores the validation images on the model without autodiff, so that nothing is kept.
fn evaluate<M: Trainable<Batch = Batch>>(
    model: &M,
    loader: &Loader,
    device: &Device,
) -> Result<Score, TrainError> {
    let model = model.valid();
    let device = device.clone().inner();
    let mut score = Score::default();
    for batch in loader.epoch(0, 0) {
        score.add(model.score(batch?.into_device(&device)));
    }
    Ok(score)
}
