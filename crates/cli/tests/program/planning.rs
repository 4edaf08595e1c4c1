//! `plan`, `gpus`, `advise` and `train`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{json, leanburn, text};

const GPT: [&str; 8] = [
    "--config",
    "configs/gpt-tiny.toml",
    "--context",
    "64",
    "--batch",
    "8",
    "--precision",
    "fp32",
];

#[test]
fn a_plan_is_told_applied_and_fits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("planned.toml");
    let file = file.to_str().unwrap();
    let plan = [&["plan", "--memory", "18MiB"], &GPT[..]].concat();
    let object = json(&[&plan[..], &["--apply", file]].concat());
    assert_eq!(object["fits"], true);
    let steps = object["steps"].as_array().unwrap();
    assert!(!steps.is_empty());
    let last = steps.last().unwrap();
    assert_eq!(last["peak"], object["peak"]["predicted"]);
    // Trap B14: the samples of an update stay.
    let train = &object["recipe"]["train"];
    let samples = |key: &str| train[key].as_u64().unwrap();
    assert_eq!(samples("batch") * samples("accumulate"), 8);

    let again = json(&["estimate", "--config", file, "--memory", "18MiB"]);
    assert_eq!(again["needed"], object["peak"]["predicted"]);
    assert_eq!(again["fits"], true);
    assert_eq!(object["recipe"]["memory"], 18 << 20);
    let told = text(&plan);
    for words in [
        "1. precision bf16",
        "saves",
        "fits into 18.0 MiB",
        "[optimizer]",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}

#[test]
fn what_fits_nowhere_says_what_would_be_enough() {
    let plan = [&["plan", "--memory", "1MiB", "--json"], &GPT[..]].concat();
    let out = leanburn(&plan);
    assert_eq!(out.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(object["fits"], false);
    let bytes = |key: &str| object[key].as_u64().unwrap();
    assert_eq!(bytes("missing"), bytes("smallest_budget") - (1 << 20));
    let out = leanburn(&[&["plan", "--memory", "1MiB"], &GPT[..]].concat());
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("the smallest memory for it is"), "{said}");
    let out = leanburn(&[&["plan"], &GPT[..]].concat());
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(said.contains("how much memory is there?"), "{said}");
}

#[test]
fn the_largest_batch_is_confirmed_by_a_step() {
    let largest = [
        "plan",
        "--config",
        "configs/gpt-tiny.toml",
        "--context",
        "32",
        "--precision",
        "fp32",
        "--backend",
        "flex",
        "--memory",
        "24MiB",
        "--largest-batch",
        "--confirm",
    ];
    let object = json(&largest);
    let batch = object["largest_batch"].as_u64().unwrap();
    assert!(batch > 2, "{object}");
    let probes = object["probes"].as_array().unwrap();
    assert_eq!(probes.last().unwrap()["batch"], batch);
    let peak = &probes[0]["peak"];
    let [predicted, measured] = ["predicted", "measured"].map(|side| peak[side].as_f64().unwrap());
    assert!((predicted / measured - 1.0).abs() < 0.05, "{object}");
}

/// A catalogue of one's own: the 24 GB card that reports 23,034 MiB, one that has hardly any, and one without bf16.
#[test]
fn cards_and_machines_are_advised() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gpus.toml");
    let card = |name: &str, mib: u32, more: &str| {
        format!(
            "[[gpu]]\nname = \"{name}\"\nmemory_mib = {mib}\nbandwidth_gbs = 300\nf32_tflops = 30\n\
             half_tflops = 120\n{more}\nsource = \"s\"\ndate = \"2026-12-02\"\n"
        )
    };
    let [bf16, old] = ["bf16 = true", "bf16 = false\nmaker = \"amd\""];
    let machine = "[[instance]]\nname = \"large\"\ncloud = \"here\"\ngpu = \"Large\"\ncount = 2\n\
                   price_usd_per_hour = 4\nregion = \"r\"\nsource = \"s\"\ndate = \"2026-12-02\"\n";
    fs::write(
        &file,
        card("Small", 570, bf16) + &card("Large", 23034, bf16) + &card("Old", 16384, old) + machine,
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let advise = [&["advise", "--catalogue", file], &GPT[..]].concat();
    let object = json(&advise);
    let cards = object["gpus"].as_array().unwrap();
    let of = |name: &str| cards.iter().find(|card| card["gpu"] == name).unwrap();
    assert_eq!(of("Large")["fits"], true);
    let levers = |name: &str| of(name)["levers"].as_array().unwrap().len();
    assert_eq!((levers("Large"), levers("Old")), (0, 0));
    assert!(levers("Small") > 0, "{}", of("Small"));
    // What needs no lever comes first, and of those what is smallest.
    let names: Vec<_> = cards.iter().map(|card| &card["gpu"]).collect();
    assert_eq!(names, ["Old", "Large", "Small"]);
    let seconds = of("Large")["seconds_per_update_at_best"].as_f64().unwrap();
    let updates = object["updates_per_epoch"].as_f64().unwrap();
    let epoch = of("Large")["instances"][0]["usd_per_epoch_at_best"].as_f64();
    // Two cards share the epoch, and four dollars an hour.
    let expected = updates * seconds / 3600.0 / 2.0 * 4.0;
    assert!((epoch.unwrap() / expected - 1.0).abs() < 1e-9);
    assert!(text(&advise).contains("an epoch of"));
    let half = [&advise[..advise.len() - 1], &["bf16"]].concat();
    let told = text(&half);
    let old = told.lines().find(|line| line.starts_with("Old")).unwrap();
    assert!(old.contains("precision f16"), "{told}");
    let plan = ["plan", "--catalogue", file, "--device", "Old"];
    let out = leanburn(&[&plan[..], &half[3..]].concat());
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("Old has no bf16"), "{said}");

    assert!(text(&["gpus", "--catalogue", file]).contains("23034"));
    let builtin = json(&["gpus"]);
    assert!(builtin["gpus"].as_array().unwrap().len() > 40);
    assert!(builtin["instances"][0]["source"].is_string());
    assert!(text(&["gpus", "--instances"]).contains("p5.48xlarge"));
    let broken = folder.path().join("broken.toml");
    fs::write(&broken, "[[gpu]]\nname = 3\n").unwrap();
    let out = leanburn(&["gpus", "--catalogue", broken.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn any_recipe_is_trained_checked_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let output = output.to_str().unwrap();
    let tiny = ["train", "--config", "configs/gpt-tiny.toml"];
    let dry = json(&[&tiny[..], &["--dry-run"]].concat());
    assert_eq!(dry["fits"], true);
    assert!(dry["memory"]["peak"]["measured"].is_null());

    let small = ["--context", "16", "--batch", "2", "--output", output];
    let run = |more: &[&str]| json(&[&tiny[..], &small[..], more].concat());
    let report = run(&["--steps", "3"]);
    assert_eq!(report["steps"], 3);
    assert!(report["memory"]["peak"]["measured"].is_u64());
    assert!(Path::new(output).join("model.safetensors").is_file());
    let more = json(&["train", "--resume", output, "--steps", "5"]);
    assert_eq!(more["steps"], 5);
    let learnt = run(&["--steps", "40", "--overfit-batch"]);
    let loss = |report: &Value| report["loss"].as_f64().unwrap();
    assert!(loss(&learnt) < loss(&report) / 2.0);
}

#[test]
fn images_train_too_and_flags_of_the_other_kind_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run");
    let report = json(&[
        "train",
        "--depth",
        "18",
        "--batch",
        "8",
        "--steps",
        "2",
        "--output",
        output.to_str().unwrap(),
    ]);
    assert_eq!(report["model"], "resnet18");
    assert_eq!(report["steps"], 2);
    for wrong in [
        &["--config", "configs/gpt-tiny.toml", "--depth", "18"][..],
        &["--config", "configs/resnet50.toml", "--preset", "tiny"],
    ] {
        let out = leanburn(&[&["train"], wrong].concat());
        assert_eq!(out.status.code(), Some(2));
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("the recipe is of"), "{said}");
    }
}
