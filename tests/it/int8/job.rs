//! From a trained network to one in integers, through a job.

use std::fs;
use std::path::Path;

use leanburn::compress::{Method, Settings};
use leanburn::models::ResNet;
use leanburn::train::quantize::{Quantizes, worst_first};
use leanburn::train::{BackendKind, Images, Job, Recipe, Text, TrainError};

use super::w8a8;
use crate::support::alone;

fn images() -> Recipe<Images> {
    let mut recipe = Recipe::<Images> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.depth = "resnet18".parse().unwrap();
    recipe.model.width = 8;
    recipe.train.epochs = 8;
    recipe
}

fn trained<T: Quantizes>(job: &Job<T>) -> T::Network {
    let folder = tempfile::tempdir().unwrap();
    let (_, model) = job.run(folder.path(), None).unwrap();
    job.in_f32(model).unwrap()
}

fn accuracy(job: &Job<Images>, network: &ResNet) -> f64 {
    job.judge(network).unwrap().score.accuracy()
}

#[test]
fn a_trained_resnet_keeps_its_answers() {
    let _alone = alone();
    let job = Job::open(images()).unwrap();
    let network = trained(&job);
    let float = job.judge(&network).unwrap();
    assert!(float.score.accuracy() > 0.9, "{}", float.score.accuracy());
    let session = job.calibrate(network.clone(), 256, None).unwrap();
    assert_eq!(session.calibrated, 256);
    let mut settings = w8a8(Method::Percentile(99.99));
    let quantized = session.quantize(&settings).unwrap();
    let int8 = job.judge(&quantized.model).unwrap();
    let drop = Images::MEASURE.loss(&float.score, &int8.score);
    assert!(drop <= 0.9, "{drop} points");
    assert!(int8.agreement(&float).unwrap() >= 0.98);

    // The file carries all that judging it again takes.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.bpk");
    let side = job.int8_side(&quantized, None, &path).unwrap();
    assert_eq!(side.disk.0, fs::metadata(&path).unwrap().len());
    assert!(side.forward_peaks.iter().all(Option::is_some));
    let loaded = job.load_quantized(&path).unwrap();
    assert_eq!(accuracy(&job, &loaded), int8.score.accuracy());

    // The worst layers are the first to be left in float.
    let outputs = session.outputs(&quantized, &settings, 64).unwrap();
    let order = worst_first(&quantized, &outputs);
    assert_eq!(order.len(), quantized.layers.len());
    assert!(order.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    let limits = (2, -200.0);
    let kept = session.keep_float(&mut settings, &order, limits, &float, &int8);
    let kept = kept.unwrap();
    assert_eq!(
        kept.len(),
        2,
        "a drop that nothing reaches takes all that it may"
    );
    assert_eq!(
        settings.keep_float,
        [order[0].0.clone(), order[1].0.clone()]
    );
    let quantized = session.quantize(&settings).unwrap();
    assert_eq!(quantized.float.len(), 2);
    let none = session.keep_float(&mut settings, &order, (2, 200.0), &float, &int8);
    assert!(none.unwrap().is_empty());
}

#[test]
fn an_untrained_network_is_refused() {
    let _alone = alone();
    let job = Job::open(images()).unwrap();
    let network = job.trained().unwrap();
    let error = job.calibrate(network, 64, None).err().unwrap();
    assert!(matches!(error, TrainError::Fold(_)), "{error}");
}

/// Trap B67: calibration on nothing.
#[test]
fn calibration_on_nothing_is_an_error() {
    let _alone = alone();
    let mut recipe = images();
    recipe.train.epochs = 1;
    let job = Job::open(recipe).unwrap();
    let network = trained(&job);
    let session = job.calibrate(network, 0, None).unwrap();
    let error = session.quantize(&w8a8(Method::MinMax)).unwrap_err();
    assert!(
        error.to_string().contains("no inputs seen of conv1"),
        "{error}"
    );
}

fn text(preset: &str) -> Recipe<Text> {
    let mut recipe = Recipe::<Text> {
        backend: BackendKind::Flex.into(),
        ..Recipe::default()
    };
    recipe.model.preset = preset.parse().unwrap();
    recipe.model.layers = Some(2);
    recipe.model.width = Some(64);
    recipe.model.heads = Some(2);
    recipe.data.context = 32;
    recipe.train.batch = 8;
    recipe.train.steps = Some(60);
    recipe.validate().unwrap();
    recipe
}

#[test]
fn a_language_model_loses_hardly_a_bit() {
    let _alone = alone();
    let job = Job::open(text("tiny")).unwrap();
    let network = trained(&job);
    let bits = |network: &_| job.judge(network).unwrap().score.bits_per_byte();
    let float = bits(&network);
    for (settings, alpha, most) in [
        (Settings::default(), None, 0.01),
        (w8a8(Method::MinMax), None, 0.03),
        (w8a8(Method::MinMax), Some(0.5), 0.03),
    ] {
        let session = job.calibrate(network.clone(), 64, alpha).unwrap();
        let int8 = session.quantize(&settings).unwrap();
        let lost = bits(&int8.model) - float;
        assert!(lost <= most, "{settings:?} {alpha:?}: {lost} bits per byte");
        assert!(int8.float.is_empty());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("int8.safetensors");
        job.export(&int8, &path).unwrap();
        assert!(holds(&path, "model.layers.0.self_attn.q_proj.weight_scale"));
    }
}

fn holds(path: &Path, name: &str) -> bool {
    let bytes = fs::read(path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    file.tensor(name).is_ok()
}

#[test]
fn an_encoder_is_quantized_with_its_inputs() {
    let _alone = alone();
    let mut recipe = text("bert-base");
    recipe.model.hidden = Some(64);
    recipe.train.steps = Some(2);
    let job = Job::open(recipe).unwrap();
    let network = trained(&job);
    let float = job.judge(&network).unwrap().score;
    let session = job.calibrate(network.clone(), 8, None).unwrap();
    let int8 = session.quantize(&w8a8(Method::MinMax)).unwrap();
    let lost = Text::MEASURE.loss(&float, &job.judge(&int8.model).unwrap().score);
    assert!(lost.abs() < 0.05, "{lost}");
    assert!(job.calibrate(network, 8, Some(0.5)).is_err());
}
