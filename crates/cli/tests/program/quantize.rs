//! `quantize`.

use std::path::Path;

use leanburn_train::{BackendKind, Images, Job, Recipe};
use serde_json::Value;

use super::{json, leanburn, text};

/// The folder of a short training run of a small ResNet.
fn run(folder: &Path) {
    let mut recipe = Recipe::<Images> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.depth = "resnet18".parse().unwrap();
    recipe.model.width = 8;
    recipe.train.epochs = 5;
    let job = Job::open(recipe).unwrap();
    let (_, model) = job.run(folder, None).unwrap();
    model
        .save_weights(&folder.join("model.safetensors"))
        .unwrap();
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn a_run_becomes_a_quarter_and_comes_back_from_its_file() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (run, file, export) = (path(""), path("int8.bpk"), path("int8.safetensors"));
    let object = json(&[
        "quantize",
        "--run",
        &run,
        "--output",
        &file,
        "--safetensors",
        &export,
        "--worst",
        "2",
        "--keep-float",
        "1",
        "--max-drop",
        "-100",
    ]);
    let (float, int8) = (&object["f32"], &object["int8"]);
    for key in ["resident_bytes", "disk_bytes"] {
        let share = number(&int8[key]) / number(&float[key]);
        assert!(share < 0.4, "{key}: {share}");
    }
    assert!((number(&float["accuracy"]) - number(&int8["accuracy"])).abs() < 0.02);
    assert!(number(&object["agreement"]) > 0.95);
    assert_eq!(object["method"], "percentile");
    assert_eq!(object["arithmetic"], "integer");
    assert_eq!(object["calibrated"], 512);
    let layers = object["layers"].as_array().unwrap();
    let in_float = object["in_float"].as_array().unwrap();
    assert_eq!((layers.len(), in_float.len()), (20, 1));
    assert_eq!(object["kept_float"][0]["layer"], in_float[0]);
    assert_eq!(object["worst"].as_array().unwrap().len(), 2);
    assert!(
        layers
            .iter()
            .all(|layer| number(&layer["output_sqnr"]) > 10.0)
    );

    let again = json(&["quantize", "--from", &file]);
    assert_eq!(again["accuracy"], int8["accuracy"]);
    let bytes = std::fs::read(&export).unwrap();
    assert!(bytes.len() < number(&float["disk_bytes"]) as usize / 2);
    assert!(text(&["quantize", "--from", &file]).contains("accuracy"));
}

#[test]
fn wrong_use_is_one_line() {
    let fails = |flags: &[&str], part: &str| {
        let output = leanburn(&[&["quantize"], flags].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(error.contains(part), "{flags:?}: {error}");
        assert!(output.stdout.is_empty());
    };
    fails(&["--model", "resnet18"], "--weights FILE, or --run DIR");
    fails(
        &["--model", "resnet19", "--weights", "w"],
        "there is no ResNet-19",
    );
    fails(
        &["--model", "resnet18", "--smooth", "0.5"],
        "--smooth is for Transformers",
    );
    fails(
        &["--model", "tiny", "--image-size", "8"],
        "--image-size is for images",
    );
    fails(&["--run", "a", "--weights", "b"], "cannot be used with");
    fails(&["--method", "kl"], "percentile");
    fails(&["--scales", "row"], "use channel or tensor");
    fails(&["--calibrate", "0"], "at least 1");
    fails(&["--smooth", "-1"], "from 0 to 1");
    fails(&["--max-drop", "nan"], "want a number");
}

#[test]
fn files_that_are_none_are_failures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.bpk");
    std::fs::write(&path, "no network").unwrap();
    let output = leanburn(&["quantize", "--from", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("text.bpk")
    );
}
