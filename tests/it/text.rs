//! Text through recipe, loop and resume: decoders, encoders, segments that carry their state.

use std::process::Command;

use leanburn::models::transformer::gpt::Preset;
use leanburn::train::text::{Size, TextModel};
use leanburn::train::{BackendKind, Job, Outcome, Recipe, Start, Text, Trainer, fit, saved};
use serde_json::Value;

use crate::support::{alone, values};

/// A model of one or two small layers on a part of the Jargon File.
fn recipe(preset: Size) -> Recipe<Text> {
    let mut recipe = Recipe::<Text> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.preset = preset;
    (recipe.model.layers, recipe.model.heads, recipe.model.width) = (Some(1), Some(2), Some(16));
    recipe.data.context = 16;
    recipe.data.val_fraction = 0.0005;
    recipe.train.batch = 4;
    recipe.train.steps = Some(12);
    recipe.precision.policy = "fp32".into();
    recipe.validate().unwrap();
    recipe
}

/// The whole recipe, from the start.
fn train(recipe: Recipe<Text>) -> (Trainer<TextModel>, Outcome) {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::open(recipe).unwrap();
    let mut trainer = job.trainer(Job::network).unwrap();
    let mut progress = job.progress(&trainer);
    let start = Start::default();
    let outcome = fit(&mut trainer, &job, folder.path(), start, &mut progress).unwrap();
    (trainer, outcome)
}

fn weights(trainer: &Trainer<TextModel>) -> Vec<f32> {
    let gpt = trainer.model().gpt().unwrap();
    values(gpt.wte.weight.base())
}

#[test]
fn a_resumed_text_run_is_the_uninterrupted_one() {
    let _alone = alone();
    let mut recipe = recipe(Size::Gpt(Preset::Small));
    recipe.model.dropout = 0.1;
    recipe.checkpoint = "every-block".parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run =
        |job: &Job<Text>, trainer: &mut Trainer<TextModel>, start, folder: &std::path::Path| {
            let mut progress = job.progress(trainer);
            fit(trainer, job, folder, start, &mut progress).unwrap()
        };
    let mut job = Job::open(recipe).unwrap();
    let mut whole = job.trainer(Job::network).unwrap();
    let outcome = run(
        &job,
        &mut whole,
        Start::default(),
        &folder.path().join("whole"),
    );
    assert!(outcome.score.unwrap().bits_per_byte() < 8.0);

    let cut = folder.path().join("cut");
    let mut first = job.trainer(Job::network).unwrap();
    job.updates = 5;
    run(&job, &mut first, Start::default(), &cut);
    job.updates = 12;
    let mut second = job.trainer(Job::network).unwrap();
    let saved = saved::open(&cut, false, |_| ()).unwrap();
    let start = job.resume(&mut second, saved).unwrap();
    run(&job, &mut second, start, &cut);
    assert_eq!(weights(&whole), weights(&second));
}

#[test]
fn segments_carry_their_state_through_the_loop() {
    let _alone = alone();
    let mut recipe = recipe(Size::Gpt(Preset::Tiny));
    recipe.data.carry = 32;
    recipe.validate().unwrap();
    let (trainer, outcome) = train(recipe.clone());
    assert!(outcome.score.unwrap().bits_per_byte() < 8.0);
    assert_eq!(trainer.applied(), 12);

    recipe.model.preset = Size::Gpt(Preset::Small);
    let error = recipe.validate().unwrap_err();
    assert!(
        error.is_wrong_use() && error.to_string().contains("rotary"),
        "{error}"
    );
}

#[test]
fn an_encoder_learns_to_fill_in() {
    let _alone = alone();
    let mut recipe = recipe(Size::BertBase);
    recipe.train.steps = Some(60);
    recipe.optimizer.lr = 2e-2;
    let (trainer, outcome) = train(recipe);
    // Uniform over 257 tokens is 5.55 nats; the frequencies of letters alone bring 3.3.
    let loss = outcome.score.unwrap().loss();
    assert!(loss < 4.2, "{loss}");
    assert!(trainer.model().gpt().is_none());
}

fn bare() -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let mut command = Command::new(path.join("examples").join("transformer_lm"));
    command.args(["--backend", "flex"]);
    command
}

fn program() -> Command {
    let mut command = bare();
    command.args(["--layers", "1", "--heads", "2", "--width", "16"]);
    command.args(["--context", "16", "--batch", "4", "--sample", "20"]);
    command
}

/// The program on a text of one's own: tokens are made, JSON has DESIGN's names, and it writes.
#[test]
fn the_program_trains_on_any_text() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    let line = "the quick brown fox\r\njumps over \u{e9}\n".repeat(200);
    std::fs::write(&text, line).unwrap();
    let output = folder.path().join("run");
    let run = |extra: &[&str]| {
        let mut command = program();
        command
            .arg("--text-file")
            .arg(&text)
            .arg("--output")
            .arg(&output);
        let done = command.args(["--steps", "3"]).args(extra).output().unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&run(&["--json", "--precision", "bf16"])).unwrap();
    for key in ["bits_per_byte", "tokens_per_second", "loss"] {
        assert!(report[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert_eq!(
        (&report["context"], &report["steps"]),
        (&16.into(), &3.into())
    );
    assert!(report["memory"]["peak"]["measured"].as_u64().unwrap() > 0);
    let printed = run(&["--prompt", "the ", "--cache", "64KiB"]);
    assert!(
        printed.contains("bits per byte") && printed.contains("\nthe "),
        "{printed}"
    );
    assert!(output.join("model.safetensors").exists());
}

#[test]
fn wrong_text_is_one_line_and_exit_code_two() {
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.txt");
    std::fs::write(&plain, "no tokens").unwrap();
    let plain = plain.to_str().unwrap();
    for (flags, code, word) in [
        (&["--preset", "huge"][..], 2, "bert-base"),
        (&["--heads", "3"], 2, "heads may be"),
        (&["--context", "0"], 2, "context"),
        (&["--preset", "small", "--carry", "8"], 2, "rotary"),
        (&["--vocabulary", "20"], 2, "256 tokens"),
        (&["--data", plain], 1, "not a token file"),
    ] {
        let output = bare()
            .arg("--output")
            .arg(folder.path().join("run"))
            .args(flags)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{flags:?}: {text}");
        let errors: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("error: ") && !line.contains("XDG"))
            .collect();
        assert_eq!(errors.len(), 1, "{text}");
        assert!(errors[0].contains(word), "{flags:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}
