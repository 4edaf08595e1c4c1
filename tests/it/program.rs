//! The example as a person runs it: exit codes, one-line errors, JSON, nothing half-written.

use std::path::PathBuf;
use std::process::{Command, Output};

fn program() -> Command {
    // Cargo puts examples beside the folder that this binary lies in.
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let mut command = Command::new(path.join("examples").join("resnet_amp"));
    command.args(["--backend", "flex"]);
    command
}

fn small(command: &mut Command, output: &PathBuf) {
    command.args([
        "--depth",
        "18",
        "--stem",
        "small",
        "--image-size",
        "8",
        "--batch",
        "16",
    ]);
    command.arg("--output").arg(output);
}

fn one_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("error"))
        .collect();
    assert_eq!(errors.len(), 1, "{text}");
    assert!(
        !text.contains("panicked") && !text.contains("RUST_BACKTRACE"),
        "{text}"
    );
    errors[0].to_owned()
}

#[test]
fn wrong_use_is_one_line_and_exit_code_two() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let recipe = folder.path().join("recipe.toml");
    std::fs::write(&recipe, "[train]\nbatsch = 3\n").unwrap();
    let recipe = recipe.to_str().unwrap();
    for (flags, word) in [
        (&["--accumulate", "0"][..], "accumulate"),
        (&["--batch", "0"], "batch"),
        (&["--epochs", "0"], "epochs"),
        (&["--steps", "0"], "steps"),
        (&["--lr", "-1"], "lr"),
        (&["--lr", "nan"], "lr"),
        (&["--image-size", "4"], "image-size"),
        (&["--precision", "f8"], "f8"),
        (&["--checkpoint", "all"], "every-block"),
        (&["--checkpoint", "every:0"], "every:0"),
        (&["--offload", "host"], "offload"),
        (&["--loss-scale", "0"], "scale"),
        (&["--loss-scale", "much"], "much"),
        (&["--global-batch", "60", "--batch", "16"], "60"),
        (&["--config", recipe], "batsch"),
        #[cfg(not(feature = "cuda"))]
        (&["--backend", "cuda"], "--features cuda"),
    ] {
        let flags: Vec<&str> = flags.to_vec();
        let mut command = program();
        if flags[0] == "--backend" {
            command = Command::new(command.get_program());
        }
        let result = command
            .args(&flags)
            .arg("--output")
            .arg(&output)
            .output()
            .unwrap();
        assert_eq!(result.status.code(), Some(2), "{flags:?}");
        let line = one_line(&result);
        assert!(line.contains(word), "{flags:?}: {line}");
        assert!(!output.exists(), "{flags:?} left something behind");
    }
}

#[test]
fn failures_are_one_line_and_exit_code_one() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let text = folder.path().join("weights.pth");
    std::fs::write(&text, "not weights").unwrap();
    for (flags, word) in [
        (["--data", "/does/not/exist"], "/does/not/exist"),
        (["--weights", "/does/not/exist.pth"], "exist.pth"),
        (["--weights", text.to_str().unwrap()], "weights.pth"),
        (
            ["--resume", folder.path().to_str().unwrap()],
            "no saved run",
        ),
        (["--config", "/does/not/exist.toml"], "exist.toml"),
    ] {
        let result = program()
            .args(flags)
            .arg("--output")
            .arg(&output)
            .output()
            .unwrap();
        assert_eq!(result.status.code(), Some(1), "{flags:?}");
        let line = one_line(&result);
        assert!(line.contains(word), "{flags:?}: {line}");
        assert!(!output.exists(), "{flags:?} left something behind");
    }
}

/// Trap B14: a global batch becomes micro-batches, and the run says which; trap B15: with BatchNorm
/// that is not the same, and the run says that too.
#[test]
fn a_run_leaves_its_artifacts_and_prints_one_object() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let mut command = program();
    small(&mut command, &output);
    command.args([
        "--global-batch",
        "32",
        "--steps",
        "3",
        "--precision",
        "f16",
        "--checkpoint",
        "every:2+cheap",
        "--json",
    ]);
    // Workers that happen not to be at work hold no buffers, and the prediction counts them all.
    command.env("RAYON_NUM_THREADS", "1");
    let result = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{stderr}");
    assert!(stderr.contains("2 micro-batches of 16"), "{stderr}");
    assert!(stderr.contains("BatchNorm"), "{stderr}");
    let report: serde_json::Value = serde_json::from_slice(&result.stdout).unwrap();
    assert_eq!(report["model"], "resnet18");
    assert_eq!(report["precision"], "f16");
    assert_eq!(report["checkpoint"], "every:2+cheap");
    assert_eq!(report["backend"], "flex");
    assert_eq!(report["accumulate"], 2);
    assert_eq!(
        report["steps"].as_u64().unwrap() + report["skipped_steps"].as_u64().unwrap(),
        3
    );
    assert_eq!(report["parameters"], 11_173_962);
    let memory = &report["memory"];
    assert_eq!(memory["rows"]["parameters"]["measured"], 4 * 11_173_962);
    assert!(memory["rows"]["framework"]["measured"].is_null());
    assert!(memory["peak"]["measured"].as_u64().unwrap() > 2 * 4 * 11_173_962);
    let side = |side: &str| memory["peak"][side].as_u64().unwrap() as f64;
    let off = side("predicted") / side("measured") - 1.0;
    assert!(off.abs() < 0.05, "{memory}");
    for file in [
        "recipe.toml",
        "metrics.csv",
        "report.json",
        "model.safetensors",
        "checkpoints",
    ] {
        assert!(output.join(file).exists(), "{file}");
    }
    let recipe = std::fs::read_to_string(output.join("recipe.toml")).unwrap();
    assert!(
        recipe.contains("accumulate = 2") && recipe.contains("policy = \"f16\""),
        "{recipe}"
    );

    let mut command = program();
    small(&mut command, &folder.path().join("more"));
    let result = command
        .arg("--resume")
        .arg(&output)
        .args(["--steps", "4"])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{stderr}");
    assert!(
        stderr.contains("after update 3") && stderr.contains("update 4/4"),
        "{stderr}"
    );
}
