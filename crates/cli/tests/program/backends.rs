//! `devices`, `probe` and `compare`.

use serde_json::Value;

use super::{json, leanburn, text};

const TINY: [&str; 12] = [
    "--config",
    "configs/gpt-tiny.toml",
    "--context",
    "16",
    "--batch",
    "2",
    "--steps",
    "3",
    "--precision",
    "fp32",
    "--optimizer",
    "sgd",
];

fn backends(object: &Value) -> &Vec<Value> {
    object["backends"].as_array().unwrap()
}

#[test]
fn devices_lists_what_is_there_and_what_is_not_compiled_in() {
    let object = json(&["devices"]);
    let flex = &object["devices"][0];
    assert_eq!(flex["backend"], "flex");
    assert!(flex["memory"].as_u64().unwrap() > 1 << 28);
    assert!(flex["free"].as_u64().unwrap() <= flex["memory"].as_u64().unwrap());
    let dtypes = flex["dtypes"].as_array().unwrap();
    assert!(
        dtypes
            .iter()
            .any(|dtype| dtype["name"] == "bf16" && dtype["arithmetic"] == true)
    );
    assert!(flex["collectives"].is_null());
    let missing = object["not_compiled_in"].as_array().unwrap();
    assert_eq!(missing.contains(&"cuda".into()), !cfg!(feature = "cuda"));
    assert!(text(&["devices"]).contains("largest allocation"));
}

#[test]
fn a_probe_tells_memory_time_and_losses() {
    let object = json(&[&["probe", "--backend", "flex"], &TINY[..]].concat());
    let losses = object["losses"].as_array().unwrap();
    assert_eq!(losses.len(), 3);
    assert!(losses[2].as_f64().unwrap() < losses[0].as_f64().unwrap() + 1.0);
    let peak = &object["memory"]["peak"];
    let [predicted, measured] = ["predicted", "measured"].map(|side| peak[side].as_f64().unwrap());
    assert!(
        (predicted / measured - 1.0).abs() < 0.05,
        "{predicted} {measured}"
    );
    assert!(object["reserved"].is_null());
    let points = object["points"].as_array().unwrap();
    assert_eq!(points[0]["at"], "start");
    assert!(points.iter().any(|point| point["at"] == "backward 0"));
    let again = json(&[&["probe", "--backend", "flex"], &TINY[..]].concat());
    assert_eq!(again["losses"], object["losses"]);
}

#[test]
fn a_backend_that_fails_is_a_row_and_the_others_still_run() {
    let arguments = [&["compare", "--backends", "flex,rocm", "--json"], &TINY[..]].concat();
    let output = leanburn(&arguments);
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let [flex, rocm] = [0, 1].map(|n| &backends(&object)[n]);
    assert_eq!(flex["largest_loss_difference"], 0.0);
    assert!(flex["memory"]["peak"]["measured"].is_u64());
    assert!(
        rocm["error"].as_str().unwrap().contains("--features rocm"),
        "{rocm}"
    );
    assert_eq!(rocm["out_of_memory"], false);
    assert!(rocm["memory"]["peak"]["predicted"].is_u64());
    let told = leanburn(&[&["compare", "--backends", "flex,rocm"], &TINY[..]].concat());
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(
        told.contains("rocm failed: --backend rocm: not compiled in"),
        "{told}"
    );
}

#[test]
fn a_backend_that_takes_too_long_is_given_up() {
    let arguments = ["compare", "--backends", "flex", "--limit", "0.05", "--json"];
    let output = leanburn(&[&arguments, &TINY[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(backends(&object)[0]["error"], "given up after 0.05 s");
}

#[test]
fn wrong_use_of_backends_is_one_line() {
    for (arguments, word) in [
        (&["probe", "--backend", "flex:1"][..], "takes no index"),
        (&["probe", "--backend", "gpu"], "unknown backend"),
        (&["compare", "--backends", "flex,auto"], "auto"),
        (&["compare", "--backends", "flex,flex"], "twice"),
        (&["compare", "--limit", "0"], "seconds"),
        (&["probe", "--steps", "0"], "0"),
    ] {
        let output = leanburn(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word) && !said.contains("panicked"), "{said}");
    }
}

/// A step that the machine cannot hold is refused before it starts, with what would make it fit.
#[test]
fn a_step_that_does_not_fit_is_refused_with_the_levers() {
    let mut arguments = vec!["probe", "--backend", "flex", "--image-size", "224"];
    arguments.extend(["--batch", "4096", "--precision", "fp32"]);
    let output = leanburn(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = said
        .lines()
        .find(|line| line.starts_with("error: "))
        .unwrap();
    assert!(
        line.contains("are free") && line.contains("--force"),
        "{line}"
    );
    assert!(
        line.contains("fit with") || line.contains("no single lever"),
        "{line}"
    );
}

/// Trap B45: no driver is one line with the CPU offered, and no panic.
#[cfg(feature = "wgpu")]
#[test]
fn wgpu_without_a_driver_is_one_line() {
    let mut command = super::program();
    command
        .env("VK_DRIVER_FILES", "/nonexistent")
        .env("VK_ICD_FILENAMES", "/nonexistent");
    // Neither OpenGL, which wgpu tries next.
    command
        .env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent")
        .env("WGPU_BACKEND", "vulkan");
    let output = command
        .args(["probe", "--backend", "wgpu"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        return; // A driver that needs no files, as on macOS.
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{said}");
    assert!(errors[0].contains("--backend flex"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
