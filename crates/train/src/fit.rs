//! Epochs over the data: windows of micro-batches, evaluation, saving, and a clean end.

use std::fs;
use std::path::Path;

use leanburn_memory::Growth;

use crate::metrics::{Line, Metrics};
use crate::saved::{self, State};
use crate::task::{Loaders, MicroBatch};
use crate::updates::Updates;
use crate::{Job, Progress, Score, Task, TrainError, Trainable, Trainer, interrupt};

/// Where a run stands.
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
    /// On all validation data, at the end; not taken where Ctrl-C ended the run.
    pub score: Option<Score>,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
}

/// Trains to the end of the recipe; saves into `output` at each epoch's end, and on Ctrl-C.
pub fn fit<T: Task, M: Trainable<Batch = T::Batch>>(
    trainer: &mut Trainer<M>,
    job: &Job<T>,
    output: &Path,
    start: Start,
    progress: &mut Progress,
) -> Result<Outcome, TrainError> {
    fs::create_dir_all(output).map_err(TrainError::io(output))?;
    job.recipe.save(&output.join("recipe.toml"))?;
    let mut metrics = Metrics::open::<T>(output.join("metrics.csv"), trainer.tried() > 0)?;
    let mut updates = Updates::open(output.join("updates.csv"), trainer.tried())?;
    let checkpoints = &output.join("checkpoints");
    if trainer.tried() == 0 {
        saved::clear(checkpoints)?;
    }
    let (epochs, mut score) = (job.recipe.train.epochs, None);
    let mut growth = Growth::default();
    let mut at = start;
    while at.epoch < epochs && trainer.tried() < job.updates {
        let epoch = at.epoch + 1;
        let walk = walk(trainer, job, at, checkpoints, &mut updates, progress)?;
        if walk.interrupted {
            progress.say("saved; go on with --resume");
            return Ok(Outcome {
                score: None,
                interrupted: true,
            });
        }
        let in_use = trainer.meter().current();
        if let Some(warning) = in_use.and_then(|in_use| growth.observe(in_use)) {
            progress.say(&format!("warning: {warning}"));
        }
        // Before the evaluation, whose failure must not cost the epoch.
        save(trainer, job, walk.end, checkpoints)?;
        clean_up(trainer, job, progress);
        let result = evaluate(trainer.model(), job)?;
        clean_up(trainer, job, progress);
        progress.say(&format!(
            "epoch {epoch} of {epochs}: training loss {:.4}, validation loss {:.4}, {}",
            walk.loss,
            result.loss(),
            T::tell(&result),
        ));
        metrics.line::<T>(&Line {
            epoch,
            update: trainer.tried(),
            skipped: trainer.skipped(),
            lr: walk.lr,
            train_loss: walk.loss,
            score: result,
            items_per_second: progress.items_per_second(),
            peak: trainer.measurement().map(|measured| measured.peak),
        })?;
        score = Some(result);
        at = Start {
            epoch,
            ..Start::default()
        };
    }
    let score = match score {
        Some(score) => score,
        None => evaluate(trainer.model(), job)?,
    };
    Ok(Outcome {
        score: Some(score),
        interrupted: false,
    })
}

/// What the rest of an epoch came to.
struct Walk {
    end: Start,
    /// Mean over the updates whose loss is a number.
    loss: f64,
    /// The last of theirs.
    lr: f64,
    interrupted: bool,
}

/// Trains on an epoch from `start` on, as far as the updates reach.
fn walk<T: Task, M: Trainable<Batch = T::Batch>>(
    trainer: &mut Trainer<M>,
    job: &Job<T>,
    start: Start,
    checkpoints: &Path,
    log: &mut Updates,
    progress: &mut Progress,
) -> Result<Walk, TrainError> {
    let (train, device) = (&job.recipe.train, &job.device());
    let mut at = start;
    let (mut losses, mut updates, mut lr) = (0.0, 0u64, 0.0);
    let (mut items, mut interrupted) = (0, false);
    let mut batches = job.train(at.epoch, at.samples).peekable();
    log.start();
    while trainer.tried() < job.updates && !interrupted {
        let Some(batch) = batches.next().transpose()? else {
            break;
        };
        at.samples += batch.visited();
        items += batch.items();
        trainer.micro_step(batch.into_device(device));
        // The last window of an epoch may be short; it is applied, and weighs by its samples.
        if trainer.waiting() < train.accumulate && batches.peek().is_some() {
            continue;
        }
        let update = trainer.update()?;
        if update.verdict.is_some() && update.loss.is_finite() {
            (losses, updates, lr) = (losses + update.loss, updates + 1, update.lr);
        }
        let loss = job.loaders.tell_loss(update.loss);
        let items = std::mem::take(&mut items);
        progress.update(trainer, items, &update, &loss);
        log.line(trainer, at.epoch + 1, items, &update)?;
        interrupted = interrupt::requested();
        let due = train.save_every > 0 && trainer.tried().is_multiple_of(train.save_every);
        if interrupted || due {
            save(trainer, job, at, checkpoints)?;
        }
    }
    if !interrupted && batches.peek().is_none() {
        at = Start {
            epoch: at.epoch + 1,
            samples: 0,
        };
    }
    Ok(Walk {
        end: at,
        loss: match updates {
            0 => f64::NAN,
            _ => losses / updates as f64,
        },
        lr,
        interrupted,
    })
}

fn save<T: Task, M: Trainable>(
    trainer: &Trainer<M>,
    job: &Job<T>,
    at: Start,
    folder: &Path,
) -> Result<(), TrainError> {
    let state = State {
        recipe: job.recipe.clone(),
        epoch: at.epoch,
        samples: at.samples,
        applied: trainer.applied(),
        tried: trainer.tried(),
        scaler: trainer.scaler().clone(),
    };
    saved::save(folder, &state, trainer.model(), trainer.optimizer()).map(|_| ())
}

/// Where training and evaluation take turns, which is where the pages of one are of no use to the other.
fn clean_up<T: Task, M: Trainable>(trainer: &Trainer<M>, job: &Job<T>, progress: &Progress) {
    if !job.recipe.train.cleanup {
        return;
    }
    if let Some(given_back) = trainer.meter().clean_up() {
        progress.say(&format!("cleanup gave back {given_back}"));
    }
}

/// Scores the validation data on the model without autodiff, so that nothing is kept.
fn evaluate<T: Task, M: Trainable<Batch = T::Batch>>(
    model: &M,
    job: &Job<T>,
) -> Result<Score, TrainError> {
    let model = model.valid();
    let device = job.device().inner();
    let mut score = Score::default();
    for batch in job.val() {
        score.add(model.score(batch?.into_device(&device)));
    }
    Ok(score)
}
