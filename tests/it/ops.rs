//! The lean operations give what Burn's own give, on every backend and in every precision.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d};
use burn::tensor::{Device, FloatDType, Tensor, activation::relu};
use leanburn::levers::{Activation, Output, Policy, conv2d, norm_act};

use crate::support::{alone, devices, is_flex, random, relative_error, values};

fn conv(channels: [usize; 2], kernel: usize, stride: usize, pad: usize, device: &Device) -> Conv2d {
    Conv2dConfig::new(channels, [kernel, kernel])
        .with_stride([stride, stride])
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(false)
        .init(device)
}

/// Output, input gradient, weight gradient.
fn run_conv(layer: &Conv2d, x: &Tensor<4>, lean: bool) -> [Vec<f32>; 3] {
    let x = x.clone().require_grad();
    let y = if lean {
        conv2d(layer, x.clone())
    } else {
        layer.forward(x.clone())
    };
    let weights = y.clone().detach().mul_scalar(0.3).sin();
    let grads = (y.clone() * weights).sum().backward();
    [
        values(y),
        values(x.grad(&grads).unwrap()),
        values(layer.weight.base().grad(&grads).unwrap()),
    ]
}

#[test]
fn convolution_equals_burns() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        // A GPU backend tunes its kernels for each new shape, which takes a software adapter minutes.
        let shapes = if is_flex(&device) { 8 } else { 1 };
        let all = [
            ([4, 6], 3, 2, 1, [9, 8], 3),
            ([3, 5], 3, 1, 1, [7, 6], 2),
            ([3, 8], 7, 2, 3, [16, 16], 2),
            ([6, 4], 1, 1, 0, [5, 5], 3),
            ([6, 4], 1, 2, 0, [6, 7], 2),
            ([5, 7], 3, 1, 0, [3, 3], 4),
            ([8, 16], 3, 1, 1, [1, 1], 5),
            ([16, 33], 3, 1, 1, [40, 40], 2),
        ];
        for (channels, kernel, stride, pad, size, batch) in all.into_iter().take(shapes) {
            let layer = conv(channels, kernel, stride, pad, &device);
            let x = random([batch, channels[0], size[0], size[1]], &device);
            let (lean, plain) = (run_conv(&layer, &x, true), run_conv(&layer, &x, false));
            for (what, (lean, plain)) in ["y", "dx", "dw"].iter().zip(lean.iter().zip(&plain)) {
                let error = relative_error(lean, plain);
                assert!(
                    error < 2e-5,
                    "{what} {channels:?} k{kernel} s{stride}: {error}"
                );
            }
        }
    }
}

#[test]
fn half_convolution_is_f32s_up_to_rounding_and_its_gradient_is_f32() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        for (text, tolerance) in [("f16", 5e-3), ("bf16", 3e-2)] {
            let Ok(policy) = Policy::resolve(text, &device) else {
                continue;
            };
            let layer = conv([4, 6], 3, 2, 1, &device);
            let x = random([3, 4, 9, 8], &device);
            let reference = run_conv(&layer, &x, true);
            let half = policy.attach(layer, &[]);
            let y = conv2d(&half, x.clone());
            assert_eq!(FloatDType::from(y.dtype()), policy.compute.dtype());
            let grads = y.sum().backward();
            let grad = half.weight.base().grad(&grads).unwrap();
            assert_eq!(FloatDType::from(grad.dtype()), FloatDType::F32);
            for (half, full) in run_conv(&half, &x, true).iter().zip(&reference) {
                let error = relative_error(half, full);
                assert!(error < tolerance, "{text}: {error}");
            }
        }
    }
}

fn reference_norm(
    norm: &BatchNorm,
    x: Tensor<4>,
    residual: Option<Tensor<4>>,
    act: Activation,
) -> Tensor<4> {
    let mut y = norm.forward(x);
    if let Some(residual) = residual {
        y = y + residual;
    }
    if act == Activation::Relu { relu(y) } else { y }
}

#[test]
fn norm_with_activation_equals_burns() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        // A sum that happens to cancel would make its relative error large.
        device.seed(1);
        for shape in [[4, 3, 5, 5], [6, 8, 1, 1], [2, 5, 17, 19]] {
            for with_residual in [false, true] {
                for (act, keep) in [
                    (Activation::Relu, Output::Kept),
                    (Activation::Relu, Output::Recomputed),
                    (Activation::Identity, Output::Kept),
                    (Activation::Identity, Output::Recomputed),
                ] {
                    let norm = || BatchNormConfig::new(shape[1]).init(&device);
                    let (lean, plain) = (norm(), norm());
                    let gamma = random([shape[1]], &device).add_scalar(1.0);
                    let lean = BatchNorm {
                        gamma: lean.gamma.map(|_| gamma.clone().require_grad()),
                        ..lean
                    };
                    let plain = BatchNorm {
                        gamma: plain.gamma.map(|_| gamma.clone().require_grad()),
                        ..plain
                    };
                    let x = random(shape, &device).mul_scalar(3.0).add_scalar(1.0);
                    let residual = random(shape, &device);
                    let run = |norm: &BatchNorm, lean: bool| {
                        let x = x.clone().require_grad();
                        let r = residual.clone().require_grad();
                        let added = with_residual.then(|| r.clone());
                        let y = if lean {
                            norm_act(norm, x.clone(), added, act, keep)
                        } else {
                            reference_norm(norm, x.clone(), added, act)
                        };
                        let weights = y.clone().detach().mul_scalar(0.7).cos();
                        let grads = (y.clone() * weights).sum().backward();
                        let mut all = vec![
                            values(y),
                            values(x.grad(&grads).unwrap()),
                            values(norm.gamma.grad(&grads).unwrap()),
                            values(norm.beta.grad(&grads).unwrap()),
                            values(norm.running_mean.value_sync()),
                            values(norm.running_var.value_sync()),
                        ];
                        all.extend(r.grad(&grads).map(values));
                        all
                    };
                    for (lean, plain) in run(&lean, true).iter().zip(&run(&plain, false)) {
                        assert!(
                            relative_error(lean, plain) < 2e-5,
                            "{shape:?} {with_residual} {act:?}"
                        );
                    }
                    let (lean, plain) = (lean.valid(), plain.valid());
                    let (x, residual) = (x.clone().inner(), residual.clone().inner());
                    let added = with_residual.then_some(residual);
                    let expected = values(reference_norm(&plain, x.clone(), added.clone(), act));
                    let actual = values(norm_act(&lean, x, added, act, Output::Kept));
                    assert!(relative_error(&actual, &expected) < 2e-5);
                }
            }
        }
    }
}

/// Trap B59: sums over a half-precision batch overflow unless they are f32.
#[test]
fn half_statistics_do_not_overflow() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        if Policy::resolve("f16", &device).is_err() {
            continue;
        }
        let norm = BatchNormConfig::new(2).init(&device);
        let x = random([64, 2, 28, 28], &device)
            .sign()
            .mul_scalar(300.0)
            .cast(FloatDType::F16);
        let x = x.require_grad();
        let y = norm_act(&norm, x.clone(), None, Activation::Relu, Output::Kept);
        let grads = y.cast(FloatDType::F32).sum().backward();
        assert!(
            values(x.grad(&grads).unwrap())
                .iter()
                .all(|v| v.is_finite())
        );
        let variance = values(norm.running_var.value_sync());
        assert!(
            (variance[0] - (0.9 + 0.1 * 90000.0)).abs() < 50.0,
            "{variance:?}"
        );
    }
}

/// Trap B82: Burn's running variance is the biased one; PyTorch's would be 0.9 + 0.1 * 2.
#[test]
fn running_variance_is_biased() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let norm = BatchNormConfig::new(1).init(&device);
    let x = Tensor::<1>::from_floats([0.0, 2.0], &device).reshape([2, 1, 1, 1]);
    norm_act(&norm, x, None, Activation::Identity, Output::Kept);
    assert_eq!(values(norm.running_var.value_sync()), [1.0]);
}

/// One forward that overflows does not spoil the running statistics for good.
#[test]
fn running_statistics_stay_finite() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let norm = BatchNormConfig::new(2).init(&device);
    let x = Tensor::<1>::from_floats([1.0, f32::NAN, 3.0, 2.0], &device).reshape([2, 2, 1, 1]);
    norm_act(&norm, x, None, Activation::Identity, Output::Kept);
    let mean = values(norm.running_mean.value_sync());
    assert_eq!(mean[1], 0.0);
    assert!((mean[0] - 0.2).abs() < 1e-6);
}

/// Padding wider than the kernel, in tiles that lie in the padding alone.
#[test]
fn padding_may_exceed_the_kernel() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let layer = conv([3, 4], 1, 1, 2, &device);
    let x = random([15, 3, 4, 4], &device);
    let expected = run_conv(&layer, &x, false);
    for (lean, plain) in run_conv(&layer, &x, true).iter().zip(&expected) {
        assert!(relative_error(lean, plain) < 2e-5);
    }
    let half = Policy::computing(leanburn::levers::Precision::Bf16).attach(layer, &[]);
    for (lean, plain) in run_conv(&half, &x, true).iter().zip(&expected) {
        assert!(relative_error(lean, plain) < 3e-2);
    }
}
