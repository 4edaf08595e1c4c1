//! torchvision files in and out; `benches/peers/tiny_weights.py` makes the small ones.

use std::fs;
use std::path::PathBuf;

use burn::module::Module;
use burn::tensor::Device;
use leanburn::levers::Policy;
use leanburn::memory::census;
use leanburn::models::{Depth, ResNet, ResNetConfig, WeightsError};

use crate::support::{alone, random, relative_error, values};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn tiny(classes: usize) -> ResNet {
    ResNetConfig::new(Depth::R18, classes)
        .with_width(4)
        .init(&Device::flex())
}

/// Trap B27: BatchNorm statistics are buffers, and counted as such.
#[test]
fn parameters_and_buffers_are_counted_exactly() {
    let _alone = alone();
    let device = Device::flex();
    for (depth, parameters, buffers) in [
        (Depth::R18, 11_689_512, 9_600),
        (Depth::R34, 21_797_672, 17_024),
        (Depth::R50, 25_557_032, 53_120),
        (Depth::R101, 44_549_160, 105_344),
        (Depth::R152, 60_192_808, 151_424),
    ] {
        let census = census(&ResNetConfig::new(depth, 1000).init(&device));
        assert_eq!(census.parameters.elements, parameters, "{depth}");
        assert_eq!(census.buffers.elements, buffers, "{depth}");
    }
}

/// Traps B22, B23, B24: every tensor is loaded, the counters are ignored and said so, and the format
/// is told by content.
#[test]
fn torchvision_files_load_by_name() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let renamed = folder.path().join("weights.safetensors");
    fs::copy(golden("tiny_resnet18.pth"), &renamed).unwrap();
    let x = random([2, 3, 32, 32], &Device::flex());
    let mut outputs = Vec::new();
    for path in [
        golden("tiny_resnet18.pth"),
        golden("tiny_resnet18.safetensors"),
        renamed,
    ] {
        let (model, report) = tiny(5).load_weights(&path, false).unwrap();
        assert_eq!(
            (report.loaded, report.ignored.len()),
            (102, 20),
            "{}",
            path.display()
        );
        outputs.push(values(model.forward(x.clone())));
    }
    assert_eq!(outputs[0], outputs[1]);
    assert_eq!(outputs[0], outputs[2]);
}

#[test]
fn another_head_needs_to_be_asked_for() {
    let _alone = alone();
    let path = golden("tiny_resnet18.safetensors");
    let error = tiny(7).load_weights(&path, false).unwrap_err();
    assert!(error.to_string().contains("--new-head"), "{error}");
    let (model, report) = tiny(7).load_weights(&path, true).unwrap();
    assert_eq!((report.loaded, model.classes()), (100, 7));
}

#[test]
fn names_that_do_not_match_are_listed() {
    let _alone = alone();
    let deeper = ResNetConfig::new(Depth::R34, 5)
        .with_width(4)
        .init(&Device::flex());
    let Err(WeightsError::Mismatch { missing, .. }) =
        deeper.load_weights(&golden("tiny_resnet18.pth"), false)
    else {
        panic!("an 18-layer file does not fill 34 layers");
    };
    assert!(
        missing.contains(&"layer1.2.conv1.weight".to_owned()),
        "{missing:?}"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.safetensors");
    ResNetConfig::new(Depth::R34, 5)
        .with_width(4)
        .init(&Device::flex())
        .save_weights(&path)
        .unwrap();
    let Err(WeightsError::Mismatch { unexpected, .. }) = tiny(5).load_weights(&path, false) else {
        panic!("a 34-layer file does not fit 18 layers");
    };
    assert!(
        unexpected.contains(&"layer1.2.bn1.weight".to_owned()),
        "{unexpected:?}"
    );
}

#[test]
fn foreign_and_truncated_files_are_errors_with_their_path() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(golden("tiny_resnet18.safetensors")).unwrap();
    for (name, bytes) in [
        ("text.pth", &b"hello world"[..]),
        ("short.safetensors", &whole[..whole.len() / 2]),
        ("empty", &[]),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = tiny(5).load_weights(&path, false).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
    assert!(
        tiny(5)
            .load_weights(&folder.path().join("none"), false)
            .is_err()
    );
}

/// What is saved under a half-precision policy is the f32 master.
#[test]
fn saved_weights_come_back_bit_for_bit() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.safetensors");
    let model = tiny(5);
    let x = random([2, 3, 32, 32], &Device::flex());
    let expected = values(model.forward(x.clone()));
    let half = model.with_policy(Policy::computing(leanburn::levers::Precision::Bf16));
    half.save_weights(&path).unwrap();
    let half_output = values(half.valid().forward(x.clone()));
    let (back, _) = tiny(5).load_weights(&path, false).unwrap();
    assert_eq!(values(back.forward(x)), expected);
    assert!(relative_error(&half_output, &expected) < 0.05);
    assert_ne!(half_output, expected);
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert!(
        file.names()
            .iter()
            .any(|name| **name == *"layer2.0.downsample.0.weight")
    );
    assert!(
        file.tensors()
            .iter()
            .all(|(_, view)| view.dtype() == safetensors::Dtype::F32)
    );
}
