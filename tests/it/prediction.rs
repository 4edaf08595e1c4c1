//! Predictions against what steps take, and against what is published.

mod foreign;

use burn::tensor::Device;
use leanburn::levers::Policy;
use leanburn::memory::trace::{is_tracing, trace};
use leanburn::memory::{Bytes, Measurement, Method, Phase, Prediction, Row, compare, heap};
use leanburn::models::transformer::gpt::Preset;
use leanburn::train::task::Builds;
use leanburn::train::text::{Size, TextFacts};
use leanburn::train::{
    BackendKind, Images, OptimizerKind, Recipe, Settings, Text, Trainer, predict,
};

use crate::support::{alone, on_one_thread};

const BYTES: TextFacts = TextFacts {
    tokens: 256,
    bytes_per_token: 1.0,
};

fn images(depth: &str, size: usize, batch: usize) -> Recipe<Images> {
    let mut recipe = Recipe::<Images>::default();
    recipe.model.depth = depth.parse().unwrap();
    recipe.data.image_size = size;
    recipe.train.batch = batch;
    recipe.precision.policy = "fp32".into();
    recipe
}

fn text(preset: Preset, context: usize, batch: usize) -> Recipe<Text> {
    let mut recipe = Recipe::<Text>::default();
    recipe.model.preset = Size::Gpt(preset);
    recipe.data.context = context;
    recipe.train.batch = batch;
    recipe.precision.policy = "fp32".into();
    recipe
}

fn predicted<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts) -> Prediction {
    let policy: Policy = recipe.precision.policy.parse().unwrap();
    predict(recipe, facts, policy, BackendKind::Flex.into()).unwrap()
}

/// Updates of the recipe for real.
fn measured<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts) -> Measurement {
    let device = Device::flex().autodiff();
    let policy: Policy = recipe.precision.policy.parse().unwrap();
    let build = || T::with_levers(recipe, policy, T::init(recipe, facts, &device).unwrap());
    let mut trainer = Trainer::bare(Settings::of(recipe), &device, build).unwrap();
    for _ in 0..3 {
        for _ in 0..recipe.train.accumulate {
            trainer.micro_step(T::blank(recipe, facts, &device));
        }
        trainer.update().unwrap();
    }
    trainer.measurement().unwrap().clone()
}

/// On one thread, as workers have buffers of their own.
fn assert_near<T: Builds>(recipe: &Recipe<T>, facts: &T::Facts)
where
    Recipe<T>: Sync,
    T::Facts: Sync,
{
    let (predicted, measured) =
        on_one_thread(|| (predicted(recipe, facts), measured(recipe, facts)));
    let compared = compare(&predicted, &measured);
    let off = |difference: leanburn::memory::Difference| difference.fraction().unwrap();
    let told = format!(
        "{}, {}: {compared:?}",
        recipe.checkpoint, recipe.precision.policy
    );
    assert!(off(compared.peak).abs() < 0.03, "{told}");
    let kept = compared.kept_after_forward;
    assert!(
        off(kept).abs() < 0.06 || kept.bytes().unwrap().abs() < 1 << 19,
        "{told}"
    );
    for (row, difference) in &compared.rows {
        let exact = matches!(
            row,
            Row::Parameters | Row::Buffers | Row::Inputs | Row::OptimizerState
        );
        assert!(!exact || difference.bytes() == Some(0), "{row}: {told}");
    }
    assert_eq!(predicted.method, Method::Trace);
    assert_eq!(compared.warning(), None);
}

#[test]
fn steps_take_what_was_predicted() {
    let _alone = alone();
    for (checkpoint, precision, optimizer) in [
        ("none", "fp32", OptimizerKind::AdamW),
        ("every-block", "f16", OptimizerKind::Sgd),
        ("sqrt+cheap", "bf16", OptimizerKind::Lion),
    ] {
        let mut recipe = images("18", 32, 16);
        recipe.checkpoint = checkpoint.parse().unwrap();
        recipe.precision.policy = precision.into();
        recipe.optimizer.name = optimizer;
        assert_near(&recipe, &10);

        let mut recipe = text(Preset::Small, 64, 16);
        (recipe.model.layers, recipe.model.heads, recipe.model.width) =
            (Some(4), Some(4), Some(128));
        recipe.checkpoint = checkpoint.parse().unwrap();
        recipe.precision.policy = precision.into();
        recipe.optimizer.name = optimizer;
        recipe.train.accumulate = 2;
        assert_near(&recipe, &BYTES);
    }
}

/// Traps B25, B27: a tied head counts once; running statistics are no parameters and have no gradients.
#[test]
fn published_models_have_their_published_sizes() {
    let _alone = alone();
    let facts = TextFacts {
        tokens: 50257,
        ..BYTES
    };
    let gpt = predicted(&text(Preset::Small, 1024, 1), &facts);
    assert_eq!(gpt.rows.get(Row::Parameters), Some(Bytes(4 * 124_439_808)));
    assert_eq!(
        gpt.rows.get(Row::OptimizerState),
        Some(Bytes(8 * 124_439_808))
    );
    let resnet = predicted(&images("50", 224, 1), &1000);
    assert_eq!(
        resnet.rows.get(Row::Parameters),
        Some(Bytes(4 * 25_557_032))
    );
    assert_eq!(resnet.rows.get(Row::Buffers), Some(Bytes(4 * 53_120)));
    assert_eq!(
        resnet.rows.get(Row::OptimizerState),
        Some(Bytes(8 * 25_557_032))
    );
}

/// Trap B30: more images, larger images, and attention that keeps its scores take more; chunks grow with the
/// length, not with its square.
#[test]
fn predictions_grow_as_the_step_does() {
    let _alone = alone();
    let kept = |size, batch| {
        let kept = predicted(&images("50", size, batch), &1000).kept_after_forward;
        kept.unwrap().0 as f64
    };
    assert!((kept(224, 64) / kept(224, 32) - 2.0).abs() < 0.02);
    assert!((kept(224, 8) / kept(112, 8) - 4.0).abs() < 0.1);

    let temporaries = |context, chunk| {
        let mut recipe = text(Preset::Tiny, context, 1);
        recipe.model.attention_chunk = Some(chunk);
        let prediction = predicted(&recipe, &BYTES);
        prediction
            .timeline
            .iter()
            .map(|rows| rows[Row::Temporaries as usize])
            .max()
            .unwrap() as f64
    };
    assert!(temporaries(4096, 0) / temporaries(2048, 0) > 3.5);
    assert!(temporaries(4096, 256) / temporaries(2048, 256) < 2.5);
}

/// Published: the inputs of convolutions, norms and ReLUs, once each, are 85.9 MB an image in f32 and 43.75 MB in
/// half. The image itself is among them; it is in the inputs' row, and in half it makes way for its copy.
#[test]
fn resnet50_keeps_the_published_bytes() {
    let _alone = alone();
    for (precision, published) in [("fp32", 85.9e6), ("f16", 43.75e6)] {
        let mut recipe = images("50", 224, 64);
        recipe.precision.policy = precision.into();
        let prediction = predicted(&recipe, &1000);
        let kept = prediction.kept_after_forward.unwrap().0 + 64 * 3 * 224 * 224 * 4;
        let ratio = kept as f64 / 64.0 / published;
        assert!((0.98..=1.02).contains(&ratio), "{precision}: {ratio}");
    }
}

/// A trace holds operations, not values.
#[test]
fn a_trace_of_a_large_step_is_small() {
    let _alone = alone();
    heap::reset_peak();
    let before = heap::current();
    let prediction = predicted(&images("50", 224, 64), &1000);
    assert!(prediction.peak > Bytes(5 << 30), "{}", prediction.peak);
    let held = heap::peak() - before;
    assert!(held < 200_000_000, "{held} bytes");
    // Nothing of it stays.
    drop(prediction);
    let after_one = heap::current();
    drop(predicted(&images("50", 224, 64), &1000));
    let grown = heap::current() as i64 - after_one as i64;
    assert!(grown < 1_000_000, "{grown} bytes");
    assert!(!is_tracing());
}

#[test]
fn the_peak_is_made_of_named_tensors_and_the_timeline_adds_up() {
    let _alone = alone();
    let prediction = predicted(&images("50", 224, 8), &1000);
    let highest = prediction
        .timeline
        .iter()
        .map(|rows| rows.iter().sum::<u64>())
        .max();
    assert_eq!(highest, Some(prediction.peak.0));
    let phases: Vec<Phase> = prediction.phases.iter().map(|(phase, _)| *phase).collect();
    assert_eq!(phases, [Phase::Forward, Phase::Backward, Phase::Update]);
    assert_eq!(prediction.largest.len(), 10);
    let first = &prediction.largest[0];
    assert_eq!(first.bytes, Bytes(8 * 64 * 112 * 112 * 4));
    assert_eq!(
        (first.row, first.layer.as_str()),
        (Row::Activations, "conv1")
    );
    assert!(
        first.tensor.starts_with("convolution [8, 64, 112, 112]"),
        "{}",
        first.tensor
    );
    // 4.1 billion multiplications with their additions an image, three times for both gradients.
    let arithmetic = prediction.arithmetic().unwrap() as f64 / 8.0;
    assert!(
        (0.95..1.01).contains(&(arithmetic / (6.0 * 4.09e9))),
        "{arithmetic}"
    );
}

#[test]
fn a_trace_inside_a_trace_is_an_error() {
    let (_, inner) = trace(|_| {
        predict(
            &images("18", 32, 2),
            &10,
            Policy::FP32,
            BackendKind::Flex.into(),
        )
    })
    .unwrap();
    // It cannot be measured either: the step would be recorded.
    assert!(inner.is_err());
}
