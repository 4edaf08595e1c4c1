//! Forwards in integers against f32, taking turns in one process.
//!
//!     cargo bench --profile dev --bench int8

use std::hint::black_box;
use std::time::Instant;

use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::{Device, Distribution, Tensor};
use leanburn::compress::{Calibration, Method, Settings, quantize};
use leanburn::levers::{conv2d, linear};

/// At least; short ones are repeated more often.
const ROUNDS: usize = 5;
/// Of both together.
const SECONDS: f64 = 1.0;

fn main() {
    // `cargo test --benches` runs this too, without anything to measure.
    if std::env::args().any(|flag| flag == "--test") {
        return;
    }
    let device = Device::flex();
    println!(
        "{:<36} {:>10} {:>10} {:>7}",
        "", "f32 ms", "int8 ms", "int8"
    );
    for width in [1024, 2048, 4096] {
        for rows in [1, 8, 64, 512] {
            let layer: Linear = LinearConfig::new(width, width).init(&device);
            let x = random([rows, width], &device);
            let int8 = integers(&layer, |layer| drop(linear(layer, x.clone())));
            compare(
                &format!("linear {width} x {width}, {rows} rows"),
                || drop(black_box(linear(&layer, x.clone()))),
                || drop(black_box(linear(&int8, x.clone()))),
            );
        }
    }
    for (channels, size, kernel) in [
        (64, 56, 3),
        (128, 28, 3),
        (256, 14, 1),
        (256, 14, 3),
        (512, 7, 3),
    ] {
        for batch in [1, 8] {
            let pad = kernel / 2;
            let layer: Conv2d = Conv2dConfig::new([channels, channels], [kernel, kernel])
                .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
                .with_bias(false)
                .init(&device);
            let x = random([batch, channels, size, size], &device);
            let int8 = integers(&layer, |layer| drop(conv2d(layer, x.clone())));
            compare(
                &format!("{kernel}x{kernel}, {channels} channels, {size} px, batch {batch}"),
                || drop(black_box(conv2d(&layer, x.clone()))),
                || drop(black_box(conv2d(&int8, x.clone()))),
            );
        }
    }
}

fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), device)
}

fn integers<M: burn::module::Module>(layer: &M, calibrate: impl Fn(&M)) -> M {
    let calibration = Calibration::new(layer);
    calibrate(&calibration.watch(layer.clone()));
    let settings = Settings {
        method: Some(Method::MinMax),
        ..Settings::default()
    };
    let quantized = quantize(layer.clone(), &settings, Some(&calibration));
    quantized.expect("a layer that saw an input").model
}

/// Median milliseconds of both, in turns.
fn compare(name: &str, float: impl Fn(), int8: impl Fn()) {
    let time = |run: &dyn Fn()| {
        let start = Instant::now();
        run();
        1e3 * start.elapsed().as_secs_f64()
    };
    float();
    int8();
    let (mut floats, mut integers) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while floats.len() < ROUNDS || start.elapsed().as_secs_f64() < SECONDS {
        floats.push(time(&float));
        integers.push(time(&int8));
    }
    let [float, int8] = [floats, integers].map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!(
        "{name:<36} {float:>10.3} {int8:>10.3} {:>6.2}x",
        int8 / float
    );
}
