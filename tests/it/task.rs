//! A task of its own: recipe, loop, report and resume know nothing of images.

use std::collections::BTreeMap;
use std::fs;

use burn::tensor::Device;
use leanburn::data::DataError;
use leanburn::train::recipe::Defaults;
use leanburn::train::task::{Loaders, Measure, MicroBatch};
use leanburn::train::{
    BackendKind, Images, Job, Recipe, Score, Start, Task, TrainError, Trainer, fit, saved,
};
use serde_json::{Value, json};

use crate::accumulation::Masked;
use crate::support::alone;

/// Lines of four tokens, of which some count.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Lines;

/// How many tokens of each line count; none of the first window.
const COUNTED: [usize; 8] = [0, 0, 2, 0, 1, 4, 0, 1];

#[derive(Clone)]
struct Line(usize);

struct AllLines;

impl MicroBatch for Line {
    type Batch = ([f32; 4], usize);

    fn visited(&self) -> usize {
        1
    }

    fn items(&self) -> usize {
        4
    }

    fn into_device(self, _device: &Device) -> Self::Batch {
        ([1.0; 4], COUNTED[self.0])
    }
}

impl Loaders for AllLines {
    type Micro = Line;

    fn train(&self, _epoch: usize, skip: usize) -> impl Iterator<Item = Result<Line, DataError>> {
        (skip..COUNTED.len()).map(|line| Ok(Line(line)))
    }

    fn val(&self) -> impl Iterator<Item = Result<Line, DataError>> {
        self.train(0, 0)
    }

    fn batches(&self) -> usize {
        COUNTED.len()
    }

    fn name(&self) -> String {
        "lines".into()
    }
}

impl Task for Lines {
    type Model = BTreeMap<String, u64>;
    type Data = BTreeMap<String, u64>;
    type Loaders = AllLines;
    type Batch = ([f32; 4], usize);

    const ITEMS: &'static str = "tokens";
    const MEASURES: &'static [Measure] = &[("perplexity", |score| score.loss().exp())];

    fn defaults() -> Defaults {
        let mut defaults = Images::defaults();
        defaults.train.batch = 1;
        defaults.train.accumulate = 2;
        defaults.train.epochs = 2;
        defaults
    }

    fn validate(_recipe: &Recipe<Self>) -> Result<(), TrainError> {
        Ok(())
    }

    fn open(_recipe: &Recipe<Self>) -> Result<AllLines, TrainError> {
        Ok(AllLines)
    }

    fn model_name(_model: &Self::Model) -> String {
        "masked".into()
    }

    fn micro_batch(recipe: &Recipe<Self>) -> usize {
        4 * recipe.train.batch
    }

    fn facts(recipe: &Recipe<Self>) -> Vec<(&'static str, Value)> {
        vec![("context", json!(recipe.data["context"]))]
    }

    fn tell(score: &Score) -> String {
        format!("perplexity {:.2}", score.loss().exp())
    }
}

fn new_trainer(job: &Job<Lines>) -> Trainer<Masked> {
    job.trainer(|job| Ok(Masked::new(&job.device()))).unwrap()
}

#[test]
fn another_task_trains_reports_and_resumes() {
    let _alone = alone();
    let mut recipe = Recipe::<Lines> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.data.insert("context".into(), 4);
    let mut job = Job::open_as_is(recipe).unwrap();
    let mut trainer = new_trainer(&job);
    assert!(
        job.describe(&trainer)
            .contains("lines\n2 micro-batches of 4 tokens an update, 8 updates"),
        "{}",
        job.describe(&trainer)
    );
    let folder = tempfile::tempdir().unwrap();

    // Cut inside the first epoch, behind its window without a token that counts.
    job.updates = 3;
    let mut progress = job.progress(&trainer);
    fit(
        &mut trainer,
        &job,
        folder.path(),
        Start::default(),
        &mut progress,
    )
    .unwrap();
    job.updates = 8;
    let saved = saved::open(folder.path(), false, |_| ()).unwrap();
    let mut trainer = new_trainer(&job);
    let start = job.resume(&mut trainer, saved).unwrap();
    assert_eq!((start.epoch, start.samples), (0, 6));
    let outcome = fit(&mut trainer, &job, folder.path(), start, &mut progress).unwrap();

    let report = job.report(&trainer, outcome, &progress).to_json();
    assert_eq!((trainer.tried(), trainer.applied()), (8, 6));
    assert_eq!(report["skipped_steps"], 2);
    assert_eq!(
        (&report["model"], &report["context"]),
        (&json!("masked"), &json!(4))
    );
    let loss = report["loss"].as_f64().unwrap();
    assert!(loss < 1.0 && report["accuracy"].is_null());
    assert_eq!(report["perplexity"].as_f64().unwrap(), loss.exp());

    let metrics = fs::read_to_string(folder.path().join("metrics.csv")).unwrap();
    let mut lines = metrics.lines();
    assert_eq!(
        lines.next().unwrap(),
        "epoch,update,skipped,lr,train_loss,val_loss,perplexity,tokens_per_second,peak_bytes"
    );
    assert_eq!(lines.clone().count(), 3, "{metrics}");
    assert!(lines.all(|line| !line.contains("NaN")), "{metrics}");

    let path = folder.path().join("recipe.toml");
    assert_eq!(Recipe::<Lines>::load(&path).unwrap(), job.recipe);
    let error = Recipe::<Images>::load(&path).unwrap_err();
    assert!(
        error.is_wrong_use() && error.to_string().contains("context"),
        "{error}"
    );
    let error = saved::open::<Images>(folder.path(), false, |_| ())
        .err()
        .unwrap();
    assert!(error.to_string().contains("context"), "{error}");
}
