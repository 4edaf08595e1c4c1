//! The program as a user runs it.

#[path = "program/backends.rs"]
mod backends;
#[path = "program/planning.rs"]
mod planning;
#[path = "program/plans.rs"]
mod plans;
#[path = "program/quantize.rs"]
mod quantize;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leanburn"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command
}

fn leanburn(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

fn text(arguments: &[&str]) -> String {
    let output = leanburn(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--json"]].concat();
    serde_json::from_str(&text(&arguments)).unwrap()
}

#[test]
fn every_recipe_is_predicted_without_its_data() {
    for (recipe, parameters) in [
        ("resnet50", 25_557_032),
        ("resnet50-amp", 25_557_032),
        ("gpt-tiny", 836_736),
        ("gpt-small", 124_475_904),
        ("bert-base", 110_074_368),
    ] {
        let path = format!("configs/{recipe}.toml");
        let object = json(&["estimate", "--config", &path, "--batch", "1"]);
        let rows = &object["memory"]["rows"];
        assert_eq!(rows["parameters"]["predicted"], 4 * parameters, "{recipe}");
        assert!(rows["framework"]["predicted"].is_null());
        assert!(object["memory"]["peak"]["measured"].is_null());
        assert_eq!(object["method"], "trace");
        assert!(object["fits"].is_null());
        assert_eq!(object["largest"].as_array().unwrap().len(), 10);
        assert!(object["largest"][0]["layer"].is_string());
    }
}

#[test]
fn what_does_not_fit_says_by_how_much_and_exits_with_one() {
    let large = [
        "estimate",
        "--config",
        "configs/resnet50.toml",
        "--batch",
        "64",
    ];
    let out = leanburn(&[&large[..], &["--memory", "4GiB"]].concat());
    assert_eq!(out.status.code(), Some(1));
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("does not fit into 4.00 GiB"), "{said}");
    assert!(said.contains("not included"), "{said}");
    let card = text(&[&large[..], &["--device", "RTX 3090"]].concat());
    assert!(
        card.contains("fits into the 24.0 GiB of an RTX 3090"),
        "{card}"
    );
    assert!(card.contains("on cuda"), "{card}");
}

#[test]
fn a_sweep_finds_the_largest_batch() {
    let sweep = [
        "estimate",
        "--config",
        "configs/resnet50.toml",
        "--sweep",
        "batch=1..40",
    ];
    let object = json(&[&sweep[..], &["--memory", "2GiB"]].concat());
    let largest = object["largest_batch"].as_u64().unwrap();
    let points = object["points"].as_array().unwrap();
    let fits = |batch: u64| {
        let point = points.iter().find(|point| point["batch"] == batch);
        point.map(|point| point["fits"].as_bool().unwrap())
    };
    assert_eq!(
        (fits(largest), fits(largest + 1)),
        (Some(true), Some(false)),
        "{object}"
    );
    assert!(text(&sweep).contains("batch     40"));
}

/// Trap B40: wgpu binds less than 2 GiB in one piece, so a tensor of 2 GiB fits no memory.
#[test]
fn what_no_buffer_holds_does_not_fit_any_memory() {
    let large = [
        "estimate",
        "--config",
        "configs/resnet50.toml",
        "--image-size",
        "512",
        "--backend",
        "wgpu",
        "--memory",
        "1TiB",
    ];
    let of = |batch: &str| leanburn(&[&large[..], &["--batch", batch, "--json"]].concat());
    let fits = |output: &Output| {
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        (
            object["fits"].as_bool().unwrap(),
            object["refused"].is_string(),
        )
    };
    let (below, above) = (of("127"), of("128"));
    assert_eq!(
        (fits(&below), below.status.code()),
        ((true, false), Some(0))
    );
    assert_eq!(
        (fits(&above), above.status.code()),
        ((false, true), Some(1))
    );
    let object = json(&[&large[..], &["--sweep", "batch=127..128"]].concat());
    assert_eq!(object["largest_batch"], 127);
}

#[test]
fn a_sweep_that_fits_nowhere_exits_with_one_and_absurd_sizes_with_two() {
    let nowhere = leanburn(&["estimate", "--sweep", "batch=1..8", "--memory", "1"]);
    assert_eq!(nowhere.status.code(), Some(1));
    for absurd in [
        &["--batch", "18446744073709551615"][..],
        &["--batch", "1000000000", "--image-size", "4096"],
        &["--accumulate", "18446744073709551615", "--levers"],
        &["--classes", "0"],
        &["--device", "RTX 3090", "--backend", "flex"],
    ] {
        let output = leanburn(&[&["estimate"], absurd].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{absurd:?}: {said}");
        assert!(!said.contains("panicked"), "{absurd:?}: {said}");
    }
}

#[test]
fn levers_are_predicted_one_by_one() {
    let object = json(&["estimate", "--config", "configs/resnet50.toml", "--levers"]);
    let levers = object["levers"].as_array().unwrap();
    let saves = |name: &str| {
        let lever = levers.iter().find(|lever| lever["lever"] == name);
        lever.unwrap_or_else(|| panic!("{name}: {object}"))["saves"]
            .as_i64()
            .unwrap()
    };
    assert!(saves("checkpoint every-block") > saves("checkpoint cheap"));
    assert!(saves("precision bf16") > 0);
    let again = levers
        .iter()
        .find(|lever| lever["lever"] == "checkpoint every-block")
        .unwrap();
    let more = again["arithmetic"].as_f64().unwrap();
    assert!(
        (0.2..0.4).contains(&more),
        "a third forward in three: {more}"
    );
}

#[test]
fn a_timeline_is_drawn() {
    let folder = std::env::temp_dir().join(format!("leanburn-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("step.svg");
    text(&[
        "estimate",
        "--batch",
        "8",
        "--timeline",
        file.to_str().unwrap(),
    ]);
    let svg = std::fs::read_to_string(&file).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("backward"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Published: 120, 31.4, 16.6 and 1.9 GB (10^9 bytes) for 7.5 billion parameters on 64 GPUs; here the command's
/// own Transformer of about that size.
#[test]
fn formulas_answer_for_what_nobody_can_build() {
    let gpt3 = "layers=96,hidden=12288,heads=96,seq=2048,vocab=51200";
    let base = [
        "estimate",
        "--transformer",
        gpt3,
        "--parallel",
        "tp=8,sp",
        "--optimizer",
        "adam",
    ];
    let total = |more: &[&str]| {
        let object = json(&[&base[..], more].concat());
        assert_eq!(object["method"], "formula");
        object["memory"]["rows"]["activations"]["predicted"]
            .as_u64()
            .unwrap()
    };
    assert!(total(&["--recompute", "full"]) < total(&["--recompute", "selective"]));
    assert!(total(&["--recompute", "selective"]) < total(&[]));
    let explained = text(&[&base[..], &["--zero", "1", "--explain"]].concat());
    assert!(explained.contains("Korthikanti et al. 2022"), "{explained}");
    assert!(explained.contains("not included"), "{explained}");
}

#[test]
fn wrong_use_is_one_line_and_exit_code_two() {
    let images = "configs/resnet50.toml";
    for (arguments, word) in [
        (
            &["estimate", "--device", "A100"][..],
            "A100 40 GB or A100 80 GB",
        ),
        (&["estimate", "--device", "Voodoo 2"], "nearest"),
        (&["estimate", "--batch", "0"], "batch"),
        (
            &["estimate", "--config", images, "--context", "7"],
            "--context is for text",
        ),
        (&["estimate", "--optimizer", "adagrad"], "adagrad"),
        (&["estimate", "--transformer", "layers=2"], "hidden"),
        (&["estimate", "--sweep", "batch=9..8"], "batch=FROM..TO"),
        (&["estimate", "--checkpoint", "often"], "often"),
    ] {
        let out = leanburn(arguments);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(word), "{arguments:?}: {said}");
        assert!(out.stdout.is_empty());
    }
}
