//! A resumed run is the uninterrupted one, bit for bit, and broken files are errors.

use std::fs;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use leanburn::models::{Depth, ResNet, Stem};
use leanburn::train::{
    BackendKind, Images, Job, OptimizerKind, Recipe, Start, Trainer, fit, saved,
};

use crate::support::{alone, values};

fn recipe(optimizer: OptimizerKind) -> Recipe<Images> {
    let mut recipe = Recipe::<Images> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.depth = Depth::R18;
    recipe.model.width = 2;
    recipe.model.stem = Some(Stem::Small);
    recipe.data.image_size = 8;
    recipe.data.augment = true;
    recipe.train.batch = 32;
    recipe.train.accumulate = 2;
    recipe.train.epochs = 2;
    recipe.train.steps = Some(28);
    recipe.train.save_every = 4;
    recipe.precision.policy = "f16".into();
    recipe.optimizer.name = optimizer;
    recipe.optimizer.lr = 0.01;
    recipe
}

fn new_trainer(job: &Job<Images>) -> Trainer<ResNet> {
    let build = |job: &Job<Images>| {
        let model = job.recipe.resnet(10).init(&job.device());
        Ok(model.with_policy(job.policy))
    };
    job.trainer(build).unwrap()
}

fn go(trainer: &mut Trainer<ResNet>, job: &Job<Images>, output: &Path, start: Start) {
    let mut progress = job.progress(trainer);
    fit(trainer, job, output, start, &mut progress).unwrap();
}

struct Everything(Vec<f32>);

impl ModuleVisitor for Everything {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.extend(values(param.base()));
    }
}

/// Parameters and running statistics.
fn everything(model: &ResNet) -> Vec<f32> {
    let mut all = Everything(Vec::new());
    model.valid().visit(&mut all);
    all.0
}

/// Traps B16, B17: scale and counters, moments, schedule and position all come back.
#[test]
fn resumed_equals_uninterrupted() {
    let _alone = alone();
    for optimizer in [OptimizerKind::Sgd, OptimizerKind::AdamW] {
        let mut job = Job::open(recipe(optimizer)).unwrap();
        assert_eq!(job.updates, 28);
        let folder = tempfile::tempdir().unwrap();

        let mut whole = new_trainer(&job);
        go(
            &mut whole,
            &job,
            &folder.path().join("whole"),
            Start::default(),
        );

        // The same run, cut in the middle of the first epoch.
        let cut = folder.path().join("cut");
        let mut trainer = new_trainer(&job);
        job.updates = 8;
        go(&mut trainer, &job, &cut, Start::default());
        drop(trainer);
        job.updates = 28;

        let saved = saved::open(&cut, false, |_| ()).unwrap();
        assert_eq!((saved.state.epoch, saved.state.samples), (0, 8 * 2 * 32));
        let mut resumed = new_trainer(&job);
        let start = job.resume(&mut resumed, saved).unwrap();
        go(&mut resumed, &job, &folder.path().join("resumed"), start);

        assert_eq!(whole.scaler(), resumed.scaler());
        assert_eq!(whole.applied(), resumed.applied());
        assert_eq!(
            everything(whole.model()),
            everything(resumed.model()),
            "{optimizer}"
        );
    }
}

/// Traps B19, B20: what is broken is named, and the one before it is used when asked.
#[test]
fn broken_files_are_named_and_the_previous_one_is_used_when_asked() {
    let _alone = alone();
    let mut recipe = recipe(OptimizerKind::Sgd);
    recipe.train.steps = Some(6);
    let job = Job::open(recipe).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new_trainer(&job);
    go(&mut trainer, &job, folder.path(), Start::default());
    let files = saved::list(&folder.path().join("checkpoints")).unwrap();
    let [older, newest] = files.as_slice() else {
        panic!("{files:?}")
    };
    let whole = fs::read(newest).unwrap();

    let mut flipped = whole.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (broken, word) in [
        (&whole[..whole.len() - 100], "truncated"),
        (&whole[..40], "truncated"),
        (b"PK\x03\x04 something else", "not a run"),
        (&flipped, "damaged"),
    ] {
        fs::write(newest, broken).unwrap();
        let error = saved::open::<Images>(folder.path(), false, |_| ())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains(word) && error.contains("update-00000006.run"),
            "{error}"
        );
        let mut heard = Vec::new();
        let saved =
            saved::open::<Images>(folder.path(), true, |error| heard.push(error.to_string()))
                .unwrap();
        assert_eq!(
            (saved.path.as_path(), saved.state.tried),
            (older.as_path(), 4)
        );
        assert!(heard.len() == 1 && heard[0].contains(word), "{heard:?}");
    }
    assert!(saved::open::<Images>(&folder.path().join("nowhere"), true, |_| ()).is_err());

    // A save that fails leaves the old file alone: the new one is written beside it first.
    fs::write(newest, &whole).unwrap();
    let leftovers = fs::read_dir(folder.path().join("checkpoints"))
        .unwrap()
        .count();
    assert_eq!(leftovers, 2, "no temporary files stay behind");
}

/// A run that does not fit is an error, and the trainer goes on with the model it had.
#[test]
fn a_run_of_another_shape_leaves_the_trainer_as_it_was() {
    let _alone = alone();
    let mut recipe = recipe(OptimizerKind::Sgd);
    recipe.train.steps = Some(1);
    let job = Job::open(recipe.clone()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    go(
        &mut new_trainer(&job),
        &job,
        folder.path(),
        Start::default(),
    );
    let saved = saved::open(folder.path(), false, |_| ()).unwrap();

    recipe.model.width = 3;
    let wider = Job::open(recipe).unwrap();
    let mut trainer = new_trainer(&wider);
    let before = everything(trainer.model());
    let error = wider.resume(&mut trainer, saved).err().unwrap();
    assert!(error.to_string().contains("update-00000001.run"), "{error}");
    assert_eq!(everything(trainer.model()), before);
    assert_eq!((trainer.applied(), trainer.tried()), (0, 0));
}
