//! What a network in integers takes.

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use leanburn::compress::{Calibration, Method, Settings, file, fold, quantize};
use leanburn::memory::{census, heap};
use leanburn::models::{Depth, ResNet, ResNetConfig, Stem};

use super::w8a8;
use crate::support::{alone, on_one_thread, random};

/// ResNet-50 with folded norms, f32.
fn resnet50(device: &Device) -> ResNet {
    let config = ResNetConfig::new(Depth::R50, 1000).with_stem(Stem::Small);
    let model = config.init(&device.clone().autodiff());
    model.forward(random([2, 3, 8, 8], &device.clone().autodiff()));
    model.valid().fold_norms(fold).unwrap()
}

/// Heap bytes that `make` leaves behind.
fn resident<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let before = heap::current();
    let made = make();
    (made, heap::current() - before)
}

/// Trap B71's question, asked of INT8: the saving is in the bytes, not in the words.
#[test]
fn resnet50_takes_a_quarter() {
    let _alone = alone();
    let device = Device::flex();
    let (model, float) = resident(|| resnet50(&device));
    let (model, int8) = resident(|| {
        let quantized = quantize(model.clone(), &Settings::default(), None).unwrap();
        (quantized.model, quantized.scheme)
    });
    let share = int8 as f64 / float as f64;
    assert!(share <= 0.256, "{int8} of {float} bytes: {share}");
    let counted = census(&model.0);
    let counted = counted.parameters.bytes.0 + counted.frozen.bytes.0;
    let off = int8 as f64 / counted as f64 - 1.0;
    assert!(
        (0.0..0.01).contains(&off),
        "{int8} measured, {counted} counted"
    );

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.bpk");
    file::save(model.0, &model.1, None, &path).unwrap();
    let disk = std::fs::metadata(&path).unwrap().len();
    let off = disk as f64 / int8 as f64 - 1.0;
    assert!(off.abs() <= 0.02, "{disk} on disk, {int8} resident");
}

/// Bytes above what is there before, at the peak of a forward at batch 1.
fn peak(model: &ResNet, x: &Tensor<4>) -> u64 {
    on_one_thread(|| model.forward(x.clone()));
    let before = heap::current();
    heap::reset_peak();
    on_one_thread(|| model.forward(x.clone()));
    heap::peak() - before
}

#[test]
fn a_forward_never_holds_more_than_one_layer_in_float() {
    let _alone = alone();
    let device = Device::flex();
    let model = resnet50(&device);
    let x = random::<4>([1, 3, 8, 8], &device);
    let calibration = Calibration::new(&model);
    on_one_thread(|| calibration.watch(model.clone()).forward(x.clone()));
    let in_float = peak(&model, &x);
    let largest = 4 * 512 * 512 * 9;
    let weights = quantize(model.clone(), &Settings::default(), None).unwrap();
    let weight_only = peak(&weights.model, &x);
    // Besides, a few tensors of a value a channel.
    let small = 16 << 10;
    assert!(
        weight_only <= in_float + largest + small,
        "{weight_only} {in_float}"
    );
    let integers = quantize(model, &w8a8(Method::MinMax), Some(&calibration)).unwrap();
    let integer = peak(&integers.model, &x);
    assert!(integer <= in_float, "{integer} {in_float}");
}

#[test]
fn a_loaded_network_takes_no_more_than_its_integers() {
    let _alone = alone();
    let device = Device::flex();
    let quantized = quantize(resnet50(&device), &Settings::default(), None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("int8.bpk");
    file::save(quantized.model, &quantized.scheme, None, &path).unwrap();
    let disk = std::fs::metadata(&path).unwrap().len();
    let config = ResNetConfig::new(Depth::R50, 1000).with_stem(Stem::Small);
    let built = super::files::without_norms(config.init(&device));
    let (_loaded, bytes) = resident(|| file::load(built, &path).unwrap().0);
    assert!(bytes <= disk + disk / 50, "{bytes} for {disk} on disk");
}
