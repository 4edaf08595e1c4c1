//! Networks in integers on disk.

use std::convert::Infallible;
use std::fs;

use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::{Device, Tensor};
use leanburn::compress::{Calibration, Method, Quantized, Settings, file, fold, quantize};
use leanburn::models::{Depth, ResNet, ResNetConfig, Stem};
use safetensors::{Dtype, SafeTensors};

use super::{resnet18, w8a8};
use crate::support::{alone, devices, random, values};

fn in_integers(device: &Device, keep_float: &[&str]) -> Quantized<ResNet> {
    let model = resnet18(device).fold_norms(fold).unwrap();
    let calibration = Calibration::new(&model);
    calibration
        .watch(model.clone())
        .forward(random([4, 3, 16, 16], device));
    let settings = Settings {
        keep_float: keep_float.iter().map(|name| name.to_string()).collect(),
        ..w8a8(Method::Percentile(99.9))
    };
    quantize(model, &settings, Some(&calibration)).unwrap()
}

/// A network of the same build and other weights.
fn blank(device: &Device) -> ResNet {
    let config = ResNetConfig::new(Depth::R18, 10).with_stem(Stem::Small);
    without_norms(config.with_width(8).init(device))
}

/// The shape that folding leaves.
pub fn without_norms(model: ResNet) -> ResNet {
    let keep = |mut conv: Conv2d, norm: &BatchNorm| {
        conv.bias = Some(norm.beta.clone());
        Ok::<_, Infallible>(conv)
    };
    let Ok(model) = model.fold_norms(keep);
    model
}

#[test]
fn what_is_loaded_computes_what_was_saved() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.bpk");
    for device in devices() {
        let x = random::<4>([2, 3, 16, 16], &device);
        let saved = in_integers(&device, &["fc", "layer1.0"]);
        let wanted = values(saved.model.forward(x.clone()));
        let about = Some("resnet18".to_owned());
        file::save(saved.model, &saved.scheme, about.clone(), &path).unwrap();
        let (loaded, scheme) = file::load(blank(&device), &path).unwrap();
        assert_eq!(scheme, saved.scheme);
        assert_eq!(scheme.len(), 18);
        assert_eq!(file::Manifest::read(&path).unwrap().about, about);
        assert_eq!(values(loaded.forward(x)), wanted);
    }
}

/// A file with another text in its metadata.
fn altered(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes
        .windows(from.len())
        .position(|part| part == from.as_bytes())
        .expect("in the file");
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

#[test]
fn files_of_another_kind_are_refused() {
    let _alone = alone();
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.bpk");
    let saved = in_integers(&device, &[]);
    file::save(saved.model, &saved.scheme, None, &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        file::load(blank(&device), &path).unwrap_err().to_string()
    };
    let error = refused(&altered(&bytes, "\"version\":1", "\"version\":7"));
    assert!(error.contains("scheme 7 is unknown"), "{error}");
    let error = refused(&altered(
        &bytes,
        "\"kind\":\"conv2d\"",
        "\"kind\":\"conv9d\"",
    ));
    assert!(error.contains("unknown scheme"), "{error}");
    let error = refused(&altered(&bytes, "\"layers\":", "\"layerx\":"));
    assert!(error.contains("unknown scheme"), "{error}");
    let error = refused(&altered(&bytes, "leanburn.int8", "leanburn.int3"));
    assert!(error.contains("no network in integers"), "{error}");
    let error = refused(&bytes[..bytes.len() / 2]);
    assert!(error.contains("int8.bpk"), "{error}");
    let error = refused(b"");
    assert!(error.contains("int8.bpk"), "{error}");

    fs::write(&path, &bytes).unwrap();
    let other = ResNetConfig::new(Depth::R34, 10).with_stem(Stem::Small);
    let error = file::load(other.init(&device), &path).unwrap_err();
    assert!(error.to_string().contains("int8.bpk"), "{error}");
    let missing = folder.path().join("none.bpk");
    assert!(file::load(blank(&device), &missing).is_err());
}

#[test]
fn safetensors_hold_integers_and_scales() {
    let _alone = alone();
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.safetensors");
    let saved = in_integers(&device, &["layer1"]);
    let model = &saved.model;
    let layout = file::Layout {
        name: &|path| model.published_name(path),
        out_first: true,
    };
    file::export(model, &saved.scheme, &layout, &path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let get = |name: &str| {
        let tensor = file
            .tensor(name)
            .unwrap_or_else(|_| panic!("{name} in {:?}", file.names()));
        (
            tensor.dtype(),
            tensor.shape().to_vec(),
            tensor.data().to_vec(),
        )
    };
    let floats = |bytes: Vec<u8>| -> Vec<f32> {
        let (each, _) = bytes.as_chunks::<4>();
        each.iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect()
    };
    assert_eq!(get("layer1.0.conv1.weight").0, Dtype::F32);
    assert_eq!(get("layer2.0.downsample.0.weight").0, Dtype::I8);
    assert_eq!(get("conv1.input_zero_point").0, Dtype::U8);
    let (dtype, shape, integers) = get("fc.weight");
    assert_eq!((dtype, &shape), (Dtype::I8, &vec![10, 64]));
    let scales = floats(get("fc.weight_scale").2);
    let weight: Vec<f32> = integers
        .iter()
        .enumerate()
        .map(|(index, integer)| f32::from(*integer as i8) * scales[index / 64])
        .collect();
    let ours: Tensor<2> = model.fc.weight.val().transpose();
    assert_eq!(weight, values(ours));
}
