use leanburn_levers::scaling::Dynamic;
use leanburn_levers::{LossScale, Precision};

use super::*;
use crate::Images;

#[test]
fn defaults_are_valid_and_round_trip() {
    let recipe = Recipe::<Images>::default();
    recipe.validate().unwrap();
    let text = toml::to_string_pretty(&recipe).unwrap();
    assert_eq!(toml::from_str::<Recipe<Images>>(&text).unwrap(), recipe);
}

#[test]
fn unknown_keys_are_refused() {
    for text in [
        "colour = 1",
        "[train]\nbatches = 3",
        "[schedule]\nwarm_up = 0.1",
    ] {
        let error = toml::from_str::<Recipe<Images>>(text)
            .unwrap_err()
            .to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn checkpointing_is_read_and_checked() {
    let recipe: Recipe<Images> =
        toml::from_str("checkpoint = \"every:2+cheap\"\noffload = \"host\"").unwrap();
    assert_eq!(recipe.checkpoint.to_string(), "every:2+cheap");
    recipe.validate().unwrap();
    let error = toml::from_str::<Recipe<Images>>("checkpoint = \"all\"").unwrap_err();
    assert!(error.to_string().contains("every-block"), "{error}");
    let nothing_to_park: Recipe<Images> = toml::from_str("offload = \"host\"").unwrap();
    assert!(nothing_to_park.validate().unwrap_err().is_wrong_use());
}

/// Trap B07: an accumulation of 0 would never update.
#[test]
fn out_of_range_is_refused_by_key() {
    let mut recipe = Recipe::<Images>::default();
    recipe.train.accumulate = 0;
    let error = recipe.validate().unwrap_err();
    assert!(
        error.is_wrong_use() && error.to_string().contains("accumulate"),
        "{error}"
    );
    let mut recipe = Recipe::<Images>::default();
    recipe.optimizer.lr = f64::NAN;
    assert!(recipe.validate().unwrap_err().to_string().contains("lr"));
}

/// Trap B08: the schedule counts updates, not micro-batches.
#[test]
fn updates_count_windows() {
    let mut recipe = Recipe::<Images>::default();
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
    let recipe: Recipe<Images> =
        toml::from_str("[precision]\nloss_scale = { init = 1024.0 }").unwrap();
    let LossScale::Dynamic(rule) = recipe.precision.loss_scale.resolve(Policy::FP32).unwrap()
    else {
        panic!("a table is a dynamic rule");
    };
    assert_eq!((rule.init, rule.interval), (1024.0, 2000));
}

/// Images, but with other defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Other;

impl Task for Other {
    type Model = <Images as Task>::Model;
    type Data = <Images as Task>::Data;
    type Loaders = <Images as Task>::Loaders;
    type Batch = <Images as Task>::Batch;

    const ITEMS: &'static str = "things";
    const MEASURES: &'static [crate::task::Measure] = &[];

    fn defaults() -> Defaults {
        let mut defaults = Images::defaults();
        defaults.train.batch = 3;
        defaults.train.steps = Some(7);
        defaults.schedule.warmup = 0.5;
        defaults
    }

    fn validate(_recipe: &Recipe<Self>) -> Result<(), TrainError> {
        Ok(())
    }

    fn open(_recipe: &Recipe<Self>) -> Result<Self::Loaders, TrainError> {
        unreachable!("no run is opened here")
    }

    fn model_name(_model: &Self::Model) -> String {
        "other".into()
    }

    fn tell(_score: &crate::Score) -> String {
        String::new()
    }
}

/// Also where a table has other keys: serde's defaults would be one set for all tasks.
#[test]
fn keys_left_out_are_the_task_s() {
    let recipe: Recipe<Other> = toml::from_str("[train]\nepochs = 2\n[schedule]").unwrap();
    let mut expected = Recipe::<Other>::default();
    expected.train.epochs = 2;
    assert_eq!(recipe, expected);
    assert_eq!((recipe.train.batch, recipe.train.steps), (3, Some(7)));
    assert_eq!(recipe.window(), "3 things an update");
    let error = toml::from_str::<Recipe<Other>>("[train]\nbatch = 1\nbatches = 3").unwrap_err();
    let line = one_line("[train]\nbatch = 1\nbatches = 3", &error);
    assert!(
        line.starts_with("line 3: unknown field `batches`, expected one of `batch`"),
        "{line}"
    );
}
