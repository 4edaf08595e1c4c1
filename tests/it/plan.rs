//! Plans against the steps that they are for.

use burn::tensor::Device;
use leanburn::levers::{CheckpointPolicy, Policy};
use leanburn::memory::trace::Rates;
use leanburn::memory::{Budget, Bytes, Measurement, Row};
use leanburn::models::transformer::gpt::Preset;
use leanburn::train::levers::Target;
use leanburn::train::plan::{Planner, Probed, largest_batch};
use leanburn::train::task::Builds;
use leanburn::train::text::{Size, TextFacts};
use leanburn::train::{
    BackendKind, Images, Job, Keep, OptimizerKind, Recipe, Settings, Text, TrainError, Trainer,
};

use crate::support::{alone, on_one_thread};

const BYTES: TextFacts = TextFacts {
    tokens: 64,
    bytes_per_token: 1.0,
};

fn policy<T: Builds>(recipe: &Recipe<T>) -> Result<Policy, TrainError> {
    Ok(recipe.precision.policy.parse()?)
}

fn planner<T: Builds>(facts: &T::Facts, keep: Keep) -> Planner<'_, T> {
    let target = Target {
        facts,
        backend: BackendKind::Flex.into(),
        policy: &policy,
    };
    Planner::new(target, keep, Rates::CPU)
}

/// Layers whose activations are most of the step.
fn gpt(layers: usize) -> Recipe<Text> {
    let mut recipe = Recipe::<Text> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.preset = Size::Gpt(Preset::Small);
    (recipe.model.layers, recipe.model.heads, recipe.model.width) =
        (Some(layers), Some(2), Some(32));
    recipe.data.context = 64;
    recipe.train.batch = 16;
    recipe.precision.policy = "fp32".into();
    recipe
}

fn resnet(depth: &str, batch: usize) -> Recipe<Images> {
    let mut recipe = Recipe::<Images> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.depth = depth.parse().unwrap();
    recipe.model.width = 8;
    recipe.data.image_size = 64;
    recipe.train.batch = batch;
    recipe.precision.policy = "fp32".into();
    recipe.optimizer.name = OptimizerKind::Sgd;
    recipe
}

/// Updates of the recipe for real; their losses.
fn run<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts) -> (Measurement, Vec<f64>) {
    let device = Device::flex().autodiff();
    let policy = policy(recipe).unwrap();
    leanburn::seed(&device, 7);
    let build = || T::with_levers(recipe, policy, T::init(recipe, facts, &device).unwrap());
    let mut trainer = Trainer::bare(Settings::of(recipe), &device, build).unwrap();
    let mut losses = Vec::new();
    for _ in 0..3 {
        for _ in 0..recipe.train.accumulate {
            trainer.micro_step(T::blank(recipe, facts, &device));
        }
        losses.push(trainer.update().unwrap().loss);
    }
    (trainer.measurement().unwrap().clone(), losses)
}

/// Under levers that change no result, losses are those of the plain run, and the peak is within the budget.
fn fits_every_budget<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts, parts: &[u64]) {
    let planner = planner::<T>(facts, Keep::RESULTS);
    let needed = planner.predict(recipe).unwrap().needed().0;
    let (_, plain) = run(recipe, facts);
    for part in parts {
        let budget = Budget::of(Bytes(needed * part / 100), false);
        let plan = planner.plan(recipe, &budget).unwrap();
        assert!(plan.fit().is_sure(), "{part} %: {:?}", plan.steps);
        assert_eq!(plan.steps.is_empty(), *part > 102);
        let (batch, accumulate) = (plan.recipe.train.batch, plan.recipe.train.accumulate);
        // Trap B14: as many samples an update as before.
        assert_eq!(batch * accumulate, recipe.train.batch);
        let (measured, losses) = run(&plan.recipe, facts);
        assert!(
            measured.peak <= budget.memory,
            "{part} %: {} of {}",
            measured.peak,
            budget.memory
        );
        for (loss, plain) in losses.iter().zip(&plain) {
            let off = (loss - plain).abs() / plain;
            assert!(off < 1e-5, "{part} %: {loss} {plain} {:?}", plan.steps);
        }
    }
}

#[test]
fn twelve_layers_fit_every_budget_down_to_a_quarter() {
    let _alone = alone();
    on_one_thread(|| fits_every_budget::<Text>(&gpt(12), &BYTES, &[105, 80, 60, 40, 25]));
}

#[test]
fn a_resnet_fits_by_schedules_alone() {
    let _alone = alone();
    let recipe = resnet("50", 16);
    on_one_thread(|| fits_every_budget::<Images>(&recipe, &10, &[105, 85, 70, 60]));
}

/// The chain's costs are estimates; by prediction of the whole step the frontier falls, to the leanest that there is.
#[test]
fn the_frontier_falls_to_the_leanest() {
    let _alone = alone();
    let facts = 10;
    let planner = planner::<Images>(&facts, Keep::RESULTS);
    let frontier = planner.frontier(&resnet("50", 16), 6, true).unwrap();
    assert!(frontier.len() >= 4, "{}", frontier.len());
    for pair in frontier.windows(2) {
        assert!(pair[1].prediction.peak < pair[0].prediction.peak);
        assert!(pair[1].seconds > 0.98 * pair[0].seconds);
    }
    let plain = &frontier[0];
    assert_eq!(plain.recipe.checkpoint, CheckpointPolicy::NONE);
    let last = frontier.last().unwrap();
    // The leanest policy that has a name is no leaner.
    for text in ["every-block+cheap", "sqrt+cheap", "every:2+cheap"] {
        let mut recipe = resnet("50", 16);
        recipe.checkpoint = text.parse().unwrap();
        let named = planner.predict(&recipe).unwrap();
        assert!(
            last.prediction.peak.0 <= named.peak.0 + named.peak.0 / 1000,
            "{text}: {} {}",
            last.prediction.peak,
            named.peak
        );
    }
}

#[test]
fn where_nothing_fits_the_smallest_budget_would() {
    let _alone = alone();
    let planner = planner::<Text>(&BYTES, Keep::default());
    let tight = Budget::of(Bytes(1 << 20), false);
    let plan = planner.plan(&gpt(3), &tight).unwrap();
    assert!(!plan.fit().is_sure());
    let smallest = Budget::of(plan.smallest_budget(), false);
    assert!(smallest.memory > tight.memory);
    let again = planner.plan(&gpt(3), &smallest).unwrap();
    assert!(again.fit().is_sure(), "{:?}", again.steps);
}

/// Levers that change results are left alone where that is asked for, and come last where not.
#[test]
fn results_are_kept_where_asked_for() {
    let _alone = alone();
    let recipe = gpt(3);
    let exact = planner::<Text>(&BYTES, Keep::RESULTS);
    let needed = exact.predict(&recipe).unwrap().needed().0;
    let budget = Budget::of(Bytes(needed / 2), false);
    let plan = exact.plan(&recipe, &budget).unwrap();
    assert_eq!(plan.recipe.precision, recipe.precision);
    assert_eq!(plan.recipe.optimizer, recipe.optimizer);
    let free = planner::<Text>(&BYTES, Keep::default());
    let plan = free.plan(&recipe, &budget).unwrap();
    assert_eq!(plan.steps[0].lever, "precision bf16");
    assert!(plan.steps[0].saves > 0);
    assert_eq!(plan.recipe.optimizer, recipe.optimizer);
}

/// Traps B34 and B35.
#[test]
fn the_largest_batch_steps_down_where_a_step_takes_more() {
    let _alone = alone();
    let recipe = gpt(3);
    let planner = planner::<Text>(&BYTES, Keep::RESULTS);
    let needed = |batch: usize| {
        let mut recipe = recipe.clone();
        recipe.train.batch = batch;
        planner.predict(&recipe).unwrap().needed()
    };
    let budget = Budget::of(Budget::of(Bytes(0), false).smallest(needed(9)), false);
    type Probe = fn(&Recipe<Text>) -> Result<Probed, TrainError>;
    let find = |probe: Option<Probe>| largest_batch(&planner, &recipe, &budget, probe);
    let found = find(None).unwrap();
    assert_eq!((found.batch, found.probes.len()), (9, 0));
    assert_eq!(found.needed, needed(9));

    let confirmed = find(Some(|_| Ok(Probed::Took(Bytes(1))))).unwrap();
    assert_eq!((confirmed.batch, confirmed.probes.len()), (9, 1));

    // Two fit, and more do not.
    let small = find(Some(|recipe| match recipe.train.batch {
        0..=2 => Ok(Probed::Took(Bytes(1))),
        _ => Ok(Probed::OutOfMemory),
    }));
    let small = small.unwrap();
    assert!((1..=2).contains(&small.batch), "{small:?}");
    assert!(small.probes.len() > 1);

    let nothing = find(Some(|_| Ok(Probed::OutOfMemory))).unwrap();
    assert_eq!(nothing.batch, 0);

    let broken = find(Some(|_| Err(TrainError::Recipe("a shape".into()))));
    assert_eq!(broken.unwrap_err().to_string(), "a shape");
}

#[test]
fn a_recipe_with_a_memory_is_planned_at_the_start() {
    let _alone = alone();
    let mut recipe = gpt(3);
    let needed = planner::<Text>(&BYTES, Keep::default()).predict(&recipe);
    recipe.memory = Some(Bytes(needed.unwrap().needed().0 / 2));
    let job = Job::open(recipe.clone()).unwrap();
    assert_ne!(job.recipe, recipe);
    assert!(job.predict().unwrap().needed() < recipe.memory.unwrap());
    // A planned recipe stays as it is, as when its run goes on.
    let again = Job::open(job.recipe.clone()).unwrap();
    assert_eq!(again.recipe, job.recipe);

    recipe.memory = Some(Bytes(1 << 20));
    let error = Job::open(recipe).map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("no recipe fits into memory = 1.0 MiB"),
        "{error}"
    );
    assert!(!error.contains('\n'));
}

#[test]
fn a_batch_is_learnt_by_heart() {
    let _alone = alone();
    let mut recipe = gpt(3);
    recipe.model.layers = Some(1);
    recipe.data.context = 16;
    recipe.train.batch = 2;
    recipe.train.steps = Some(60);
    recipe.optimizer.lr = 1e-2;
    let mut job = Job::open(recipe).unwrap();
    job.learn_by_heart().unwrap();
    let mut trainer = job.trainer(Job::network).unwrap();
    let mut progress = job.progress(&trainer);
    let folder = tempfile::tempdir().unwrap();
    let start = Default::default();
    let outcome = leanburn::train::fit(&mut trainer, &job, folder.path(), start, &mut progress);
    let score = outcome.unwrap().score.unwrap();
    assert_eq!(score.samples, 32);
    assert!(score.loss() < 0.5, "{}", score.loss());
}

/// Gradients of micro-batches that wait are in the ledger's row of their own.
#[test]
fn accumulation_is_no_lever_where_gradients_rule() {
    let _alone = alone();
    let mut recipe = gpt(3);
    recipe.data.context = 4;
    recipe.train.batch = 4;
    let planner = planner::<Text>(&BYTES, Keep::RESULTS);
    let plan = planner.plan(&recipe, &Budget::of(Bytes(1 << 20), false));
    let plan = plan.unwrap();
    assert_eq!(plan.recipe.train.accumulate, 1, "{:?}", plan.steps);
    assert!(plan.prediction.needed() <= plan.before);
    assert!(plan.prediction.rows.get(Row::Gradients).is_some());
}

/// On a GPU inputs that wait in host memory are no part of the step; on the CPU the host's memory is the device's.
#[test]
fn parked_inputs_are_predicted_where_they_are() {
    let _alone = alone();
    let kept = |backend: BackendKind, checkpoint: &str| {
        let mut recipe = gpt(4);
        recipe.checkpoint = checkpoint.parse().unwrap();
        let policy = policy(&recipe).unwrap();
        let prediction = leanburn::train::predict(&recipe, &BYTES, policy, backend.into());
        prediction.unwrap().kept_after_forward.unwrap().0
    };
    let (stay, parked) = ("schedule:(1),(1),(1),1", "schedule:(1),host(1),host(1),1");
    // [batch, context, width] in f32.
    let input = 16 * 64 * 32 * 4;
    assert_eq!(
        kept(BackendKind::Cuda, stay) - kept(BackendKind::Cuda, parked),
        2 * input
    );
    assert_eq!(
        kept(BackendKind::Flex, stay),
        kept(BackendKind::Flex, parked)
    );
}
