//! Networks in integers: what they compute, what they take, and what their files hold.

mod bytes;
mod files;
mod job;
mod transformer;

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Distribution, Tensor, activation::relu};
use leanburn::compress::{
    Calibration, FoldError, Granularity, Method, Outputs, QuantizeError, Settings, fold, quantize,
};
use leanburn::levers::int8::{Affine, Arithmetic, Int8};
use leanburn::levers::{conv2d, linear};
use leanburn::models::{Depth, ResNet, ResNetConfig, Stem};

use crate::support::{alone, devices, is_flex, random, relative_error, values};

/// Inputs that are rounded by what was seen.
fn w8a8(method: Method) -> Settings {
    Settings {
        method: Some(method),
        ..Settings::default()
    }
}

/// A norm that has seen something.
fn seen(channels: usize, device: &Device) -> BatchNorm {
    let norm: BatchNorm = BatchNormConfig::new(channels).init(device);
    let of = |low, high| Tensor::random([channels], Distribution::Uniform(low, high), device);
    norm.running_mean.update(of(-1.0, 1.0));
    norm.running_var.update(of(0.2, 4.0));
    // Burn's norm sees an update only once somebody has asked for it.
    norm.running_mean.value_sync();
    norm.running_var.value_sync();
    let mut norm = norm;
    norm.gamma = norm.gamma.map(|_| of(-2.0, 2.0));
    norm.beta = norm.beta.map(|_| of(-1.0, 1.0));
    norm
}

/// A ResNet-18 whose norms have seen batches, for evaluation.
pub fn resnet18(device: &Device) -> ResNet {
    let config = ResNetConfig::new(Depth::R18, 10).with_stem(Stem::Small);
    let model = config.with_width(8).init(&device.clone().autodiff());
    for _ in 0..3 {
        model.forward(random([8, 3, 16, 16], &device.clone().autodiff()));
    }
    model.valid()
}

/// Trap B68: with and without a bias of the convolution.
#[test]
fn folding_changes_nothing() {
    let _alone = alone();
    for device in devices() {
        for bias in [false, true] {
            let conv: Conv2d = Conv2dConfig::new([3, 5], [3, 3])
                .with_bias(bias)
                .with_initializer(burn::module::Initializer::Normal {
                    mean: 0.0,
                    std: 0.3,
                })
                .init(&device);
            let mut conv = conv;
            conv.bias = conv.bias.map(|bias| bias.map(|bias| bias + 0.7));
            let norm = seen(5, &device);
            let x = random([2, 3, 6, 6], &device);
            let wanted = values(norm.forward(conv.forward(x.clone())));
            let folded = fold(conv, &norm).unwrap();
            let error = relative_error(&values(folded.forward(x)), &wanted);
            assert!(error < 1e-5, "bias {bias}: {error}");
        }
    }
}

#[test]
fn a_folded_network_computes_the_same() {
    let _alone = alone();
    let device = Device::flex();
    let model = resnet18(&device);
    let x = random([4, 3, 16, 16], &device);
    let wanted = values(model.forward(x.clone()));
    let folded = model.fold_norms(fold).unwrap();
    assert!(folded.bn1.is_none() && folded.blocks().all(|block| block.bn2.is_none()));
    let error = relative_error(&values(folded.forward(x)), &wanted);
    assert!(error < 1e-5, "{error}");
}

#[test]
fn a_norm_without_statistics_is_not_folded() {
    let device = Device::flex();
    let conv: Conv2d = Conv2dConfig::new([3, 5], [3, 3]).init(&device);
    let fresh: BatchNorm = BatchNormConfig::new(5).init(&device);
    let error = fold(conv.clone(), &fresh).unwrap_err();
    assert_eq!(error, FoldError::NoStatistics(5));
    fresh
        .running_var
        .update(Tensor::from_data([1.0, 1.0, -1.0, 1.0, 1.0], &device));
    assert_eq!(
        fold(conv.clone(), &fresh).unwrap_err(),
        FoldError::Broken(5)
    );
    let other = seen(4, &device);
    assert!(matches!(
        fold(conv, &other).unwrap_err(),
        FoldError::Channels { conv: 5, norm: 4 }
    ));
}

fn convolution(groups: usize, stride: usize, pad: usize, bias: bool, device: &Device) -> Conv2d {
    Conv2dConfig::new([4, 6], [3, 3])
        .with_groups(groups)
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(bias)
        .init(device)
}

/// A module with one input rounding, as the layers of a network have it.
fn quantized<M: Module>(layer: M, calibrate: impl Fn(&M)) -> M {
    let calibration = Calibration::new(&layer);
    calibrate(&calibration.watch(layer.clone()));
    let settings = w8a8(Method::MinMax);
    quantize(layer, &settings, Some(&calibration))
        .unwrap()
        .model
}

/// Whatever the arithmetic, the result is that of real numbers on rounded inputs and weights.
#[test]
fn convolutions_compute_what_their_integers_say() {
    let _alone = alone();
    for device in devices() {
        let shapes = if is_flex(&device) { 5 } else { 1 };
        let all = [
            (1, 1, 1, true),
            (1, 2, 1, false),
            (2, 1, 0, true),
            (2, 2, 1, true),
            (1, 1, 0, false),
        ];
        for (groups, stride, pad, bias) in all.into_iter().take(shapes) {
            let x = random::<4>([2, 4, 7, 6], &device) + 0.5;
            let layer = convolution(groups, stride, pad, bias, &device);
            let layer = quantized(layer, |layer| {
                conv2d(layer, x.clone());
            });
            let input = layer.weight.reparameterization::<Int8>().unwrap().input;
            let wanted = layer.forward(input.unwrap().round(x.clone()));
            let error = relative_error(&values(conv2d(&layer, x)), &values(wanted));
            assert!(error < 2e-6, "{groups} {stride} {pad} {bias}: {error}");
        }
    }
    assert_eq!(Arithmetic::of(&Device::flex()), Arithmetic::Integer);
}

#[test]
fn linear_layers_compute_what_their_integers_say() {
    let _alone = alone();
    for device in devices() {
        let layer: Linear = LinearConfig::new(12, 8).init(&device);
        let x = random::<3>([2, 3, 12], &device);
        let integers = quantized(layer.clone(), |layer| {
            linear(layer, x.clone());
        });
        let input = integers.weight.reparameterization::<Int8>().unwrap().input;
        let rounded = input.unwrap().round(x.clone());
        let wanted = rounded.matmul(integers.weight.val().unsqueeze())
            + integers.bias.as_ref().unwrap().val().unsqueeze();
        let error = relative_error(&values(linear(&integers, x.clone())), &values(wanted));
        assert!(error < 2e-6, "{error}");
        let float = values(linear(&layer, x.clone()));
        let error = relative_error(&values(linear(&integers, x.clone())), &float);
        assert!(error < 0.02, "{error}");
        // Burn's own layer runs on it too, on inputs as they are.
        let error = relative_error(&values(integers.forward(x)), &float);
        assert!(error < 0.01, "{error}");
    }
}

/// Where sums are longest and largest: 16-bit intermediate sums would saturate.
#[test]
fn extreme_integers_do_not_overflow() {
    let device = Device::flex();
    let mut layer: Linear = LinearConfig::new(4096, 2).with_bias(false).init(&device);
    layer.weight = layer.weight.map(|weight| weight.ones_like());
    let x = Tensor::<2>::ones([1, 4096], &device);
    let layer = quantized(layer, |layer| {
        linear(layer, x.clone());
    });
    assert_eq!(
        layer.weight.reparameterization::<Int8>().unwrap().input,
        Some(Affine::spanning(0.0, 1.0))
    );
    let y = values(linear(&layer, x));
    assert!(y.iter().all(|y| (y - 4096.0).abs() < 0.01), "{y:?}");
}

/// Trap B67: layers that saw nothing are named, and nothing is quantized with a made-up range.
#[test]
fn layers_without_inputs_are_named() {
    let device = Device::flex();
    let model = resnet18(&device).fold_norms(fold).unwrap();
    let calibration = Calibration::new(&model);
    let settings = w8a8(Method::MinMax);
    let error = quantize(model.clone(), &settings, Some(&calibration)).unwrap_err();
    let QuantizeError::Uncalibrated(names) = &error else {
        panic!("{error}");
    };
    assert_eq!(names.len(), 21, "20 convolutions and the head");
    assert!(error.to_string().contains("layer1.0.conv1, layer1.0.conv2"));
    assert!(quantize(model.clone(), &settings, None).is_err());
    // Those that need no input do not ask for one.
    let settings = Settings {
        weight_only: vec!["layer1".into(), "fc".into()],
        ..w8a8(Method::MinMax)
    };
    let error = quantize(model, &settings, Some(&calibration)).unwrap_err();
    assert!(!error.to_string().contains("layer1.0") && error.to_string().contains("layer2.0"));
}

#[test]
fn misuse_is_named() {
    let _alone = alone();
    let device = Device::flex();
    let model = resnet18(&device).fold_norms(fold).unwrap();
    let unknown = Settings {
        keep_float: vec!["layer9".into()],
        ..Settings::default()
    };
    let error = quantize(model.clone(), &unknown, None).unwrap_err();
    assert!(error.to_string().contains("layer9") && error.to_string().contains("layer2.0.conv1"));
    assert!(error.to_string().ends_with("9 others"), "{error}");
    let all = ["conv1", "layer1", "layer2", "layer3", "layer4", "fc"];
    let nothing = Settings {
        keep_float: all.map(String::from).into(),
        ..Settings::default()
    };
    let error = quantize(model.clone(), &nothing, None).unwrap_err();
    assert!(matches!(error, QuantizeError::Nothing));

    let calibration = Calibration::new(&model);
    let watched = calibration.watch(model.clone());
    watched.forward(random([1, 3, 16, 16], &device) / 0.0);
    let error = quantize(model.clone(), &w8a8(Method::MinMax), Some(&calibration)).unwrap_err();
    assert!(error.to_string().contains("inputs of conv1"), "{error}");

    let once = quantize(model.clone(), &Settings::default(), None).unwrap();
    let error = quantize(once.model, &Settings::default(), None).unwrap_err();
    assert!(matches!(error, QuantizeError::Taken(_)), "{error}");

    let mut broken = model;
    broken.fc.weight = broken.fc.weight.map(|weight| weight / 0.0);
    let error = quantize(broken, &Settings::default(), None).unwrap_err();
    assert!(error.to_string().contains("weight of fc"), "{error}");
}

#[test]
fn a_network_survives_every_method_and_the_report_says_how() {
    let _alone = alone();
    let device = Device::flex();
    let model = resnet18(&device).fold_norms(fold).unwrap();
    let calibration = Calibration::new(&model);
    let watched = calibration.watch(model.clone());
    let x = random::<4>([8, 3, 16, 16], &device);
    for _ in 0..4 {
        watched.forward(random([8, 3, 16, 16], &device));
    }
    let wanted = values(model.forward(x.clone()));
    for method in Method::ALL {
        let int8 = quantize(model.clone(), &w8a8(method), Some(&calibration)).unwrap();
        let error = relative_error(&values(int8.model.forward(x.clone())), &wanted);
        assert!(error < 0.15, "{method}: {error}");
        assert_eq!(int8.layers.len(), 21);
        let outputs = Outputs::new(&int8.scheme, Granularity::Channel);
        outputs.watch(model.clone()).forward(x.clone());
        for report in &int8.layers {
            let path = &report.layer.path;
            let input = report.input.unwrap();
            assert!(
                report.weight.sqnr() > 35.0,
                "{path} {}",
                report.weight.sqnr()
            );
            assert!(input.saturated < 0.1, "{method} {path} {}", input.saturated);
            assert!(input.range.low() <= 0.0 && input.range.high() > 0.0);
            let sqnr = outputs.noise(path).unwrap().sqnr();
            assert!(sqnr > 15.0 && sqnr < 80.0, "{method} {path} {sqnr}");
        }
    }
}

/// Trap B66: a depthwise convolution whose channels differ a thousandfold, as folded norms leave them.
#[test]
fn a_quiet_depthwise_channel_survives() {
    let _alone = alone();
    for device in devices() {
        let conv = Conv2dConfig::new([4, 4], [3, 3]).with_groups(4);
        let mut layer: Conv2d = conv.with_bias(false).init(&device);
        let ranges = Tensor::<1>::from_floats([0.01, 10.0, 0.01, 10.0], &device);
        layer.weight = layer
            .weight
            .map(|weight| weight * ranges.reshape([4, 1, 1, 1]));
        let x = random::<4>([2, 4, 9, 9], &device);
        let quiet = |y: Tensor<4>| values(y.slice([0..2, 0..1]));
        let wanted = quiet(layer.forward(x.clone()));
        let error = |granularity| {
            let settings = Settings {
                granularity,
                ..Settings::default()
            };
            let int8 = quantize(layer.clone(), &settings, None).unwrap();
            relative_error(&quiet(int8.model.forward(x.clone())), &wanted)
        };
        let [channel, tensor] = [Granularity::Channel, Granularity::Tensor].map(error);
        assert!(channel < 0.02 && tensor > 0.5, "{channel} {tensor}");
    }
}

/// One channel a hundred times louder, on the way through a network.
#[test]
fn a_scale_per_channel_is_worth_twenty_decibels() {
    let _alone = alone();
    let device = Device::flex();
    let mut layer = convolution(1, 1, 1, true, &device);
    let loud = Tensor::<1>::from_floats([100.0, 1.0, 1.0, 1.0, 1.0, 1.0], &device);
    layer.weight = layer
        .weight
        .map(|weight| weight * loud.reshape([6, 1, 1, 1]));
    let x = random::<4>([2, 4, 9, 9], &device);
    let quiet = |y: Tensor<4>| values(relu(y).slice([0..2, 1..6]));
    let wanted = quiet(layer.forward(x.clone()));
    let sqnr = [Granularity::Channel, Granularity::Tensor].map(|granularity| {
        let settings = Settings {
            granularity,
            ..Settings::default()
        };
        let int8 = quantize(layer.clone(), &settings, None).unwrap();
        let got = quiet(int8.model.forward(x.clone()));
        let outputs = leanburn::compress::Noise::of(wanted.iter().copied().zip(got)).sqnr();
        (outputs, int8.layers[0].worst_channel)
    });
    let [channel, tensor] = sqnr;
    assert!(channel.0 >= tensor.0 + 20.0, "outputs: {sqnr:?}");
    assert!(channel.1 >= tensor.1 + 20.0, "weights: {sqnr:?}");
}
