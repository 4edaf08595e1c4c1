//! A resumed run is the uninterrupted one, bit for bit, and broken files are errors.

use std::fs;
use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use leanburn::levers::LossScaler;
use leanburn::memory::{Bytes, Meter};
use leanburn::models::{Depth, ResNet, Stem};
use leanburn::train::{
    Backend, Loaders, OptimizerKind, Progress, Recipe, Settings, Start, Trainer, fit, saved,
};

use crate::support::{alone, values};

fn recipe(optimizer: OptimizerKind) -> Recipe {
    let mut recipe = Recipe {
        backend: Backend::Flex,
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

fn new_trainer(recipe: &Recipe, total: u64) -> Trainer<ResNet> {
    let device = Device::flex().autodiff();
    let policy = recipe.policy(&device).unwrap();
    device.seed(recipe.train.seed);
    let model = recipe.resnet(10).init(&device).with_policy(policy);
    let scaler = LossScaler::new(recipe.precision.loss_scale.resolve(policy).unwrap()).unwrap();
    let schedule = recipe
        .schedule
        .start(recipe.optimizer.lr, total, 0)
        .unwrap();
    Trainer::new(
        model,
        Settings::of(recipe),
        schedule,
        scaler,
        Meter::new(&device),
        Bytes(0),
    )
}

fn go(
    trainer: &mut Trainer<ResNet>,
    loaders: &Loaders,
    recipe: &Recipe,
    output: &Path,
    start: Start,
) {
    let device = Device::flex().autodiff();
    let mut progress = Progress::new(0, 0);
    fit(
        trainer,
        loaders,
        recipe,
        &device,
        output,
        start,
        &mut progress,
    )
    .unwrap();
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
        let recipe = recipe(optimizer);
        let loaders = Loaders::open(&recipe).unwrap();
        let total = recipe.updates(loaders.train.batches());
        assert_eq!(total, 28);
        let folder = tempfile::tempdir().unwrap();

        let mut whole = new_trainer(&recipe, total);
        go(
            &mut whole,
            &loaders,
            &recipe,
            &folder.path().join("whole"),
            Start::default(),
        );

        // The same run, cut in the middle of the first epoch.
        let cut = folder.path().join("cut");
        let mut first = recipe.clone();
        first.train.steps = Some(8);
        let mut trainer = new_trainer(&recipe, total);
        go(&mut trainer, &loaders, &first, &cut, Start::default());
        drop(trainer);
        let middle = cut.join("checkpoints/update-00000008.run");
        assert!(middle.is_file());

        let state = saved::open(&cut, false, |_| ()).unwrap();
        let start = Start {
            epoch: state.state.epoch,
            samples: state.state.samples,
        };
        assert_eq!((start.epoch, start.samples), (0, 8 * 2 * 32));
        let schedule = recipe
            .schedule
            .start(recipe.optimizer.lr, total, state.state.applied)
            .unwrap();
        let mut resumed = new_trainer(&recipe, total);
        resumed.restore(state, schedule).unwrap();
        go(
            &mut resumed,
            &loaders,
            &recipe,
            &folder.path().join("resumed"),
            start,
        );

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
    let loaders = Loaders::open(&recipe).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut trainer = new_trainer(&recipe, 6);
    go(
        &mut trainer,
        &loaders,
        &recipe,
        folder.path(),
        Start::default(),
    );
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
        let error = saved::open(folder.path(), false, |_| ())
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains(word) && error.contains("update-00000006.run"),
            "{error}"
        );
        let mut heard = Vec::new();
        let saved =
            saved::open(folder.path(), true, |error| heard.push(error.to_string())).unwrap();
        assert_eq!(
            (saved.path.as_path(), saved.state.tried),
            (older.as_path(), 4)
        );
        assert!(heard.len() == 1 && heard[0].contains(word), "{heard:?}");
    }
    assert!(saved::open(&folder.path().join("nowhere"), true, |_| ()).is_err());

    // A save that fails leaves the old file alone: the new one is written beside it first.
    fs::write(newest, &whole).unwrap();
    let leftovers = fs::read_dir(folder.path().join("checkpoints"))
        .unwrap()
        .count();
    assert_eq!(leftovers, 2, "no temporary files stay behind");
}
