//! The lean layers of Transformers give what plain operations give, on every backend and in every
//! precision.

use burn::nn::{Linear, LinearConfig, RmsNormConfig};
use burn::tensor::activation::{gelu_approximate, silu};
use burn::tensor::module::layer_norm as plain_layer_norm;
use burn::tensor::{Device, FloatDType, Tensor};
use leanburn::levers::ops::Rotary;
use leanburn::levers::{Gelu, Policy, gelu, layer_norm, linear, rms_norm, swiglu};

use crate::support::{alone, devices, random, relative_error, values};

/// Output and the gradients for all inputs.
fn run<const N: usize>(
    inputs: [&Tensor<2>; N],
    f: impl FnOnce([Tensor<2>; N]) -> Tensor<2>,
) -> Vec<Vec<f32>> {
    let inputs = inputs.map(|x| x.clone().detach().require_grad());
    let y = f(inputs.clone()).cast(FloatDType::F32);
    let weights = y.clone().detach().mul_scalar(3.0).sin();
    let grads = (y.clone() * weights).sum().backward();
    let grads = inputs.iter().map(|x| values(x.grad(&grads).unwrap()));
    [values(y)].into_iter().chain(grads).collect()
}

fn assert_near(actual: &[Vec<f32>], expected: &[Vec<f32>], tolerance: f32, what: &str) {
    for (index, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let error = relative_error(actual, expected);
        assert!(error <= tolerance, "{what} {index}: {error}");
    }
}

fn vector(x: Tensor<2>) -> Tensor<1> {
    x.squeeze_dim(0)
}

fn erf_gelu(x: Tensor<2>) -> Tensor<2> {
    x.clone() * (x.mul_scalar(0.5f64.sqrt()).erf() + 1.0) * 0.5
}

/// Each operation in f32 as a function of `x`, `a`, `b` `[4, 8]`, `gamma` and `beta` `[1, 8]`.
type Layer = fn([Tensor<2>; 3]) -> Tensor<2>;

const LAYERS: [(&str, Layer, Layer); 5] = [
    (
        "layer norm",
        |[x, gamma, beta]| layer_norm(x, vector(gamma), vector(beta), 1e-5),
        |[x, gamma, beta]| plain_layer_norm(x, vector(gamma), Some(vector(beta)), 1e-5),
    ),
    (
        "rms norm",
        |[x, gamma, beta]| rms_norm(x, vector(gamma), 1e-5) + beta,
        |[x, gamma, beta]| {
            let mut norm = RmsNormConfig::new(8).with_epsilon(1e-5).init(&x.device());
            norm.gamma = burn::module::Param::from_tensor(Tensor::ones([8], &x.device()));
            norm.forward(x) * gamma + beta
        },
    ),
    (
        "gelu",
        |[x, a, b]| gelu(x * a, Gelu::Exact) + b,
        |[x, a, b]| erf_gelu(x * a) + b,
    ),
    (
        "gelu tanh",
        |[x, a, b]| gelu(x * a, Gelu::Tanh) + b,
        |[x, a, b]| gelu_approximate(x * a) + b,
    ),
    (
        "swiglu",
        |[x, a, b]| swiglu(x.clone() * a, x + b),
        |[x, a, b]| silu(x.clone() * a) * (x + b),
    ),
];

#[test]
fn layers_equal_plain_operations() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let x = random([4, 8], &device).mul_scalar(2.0);
        let (gamma, beta) = (random([1, 8], &device), random([1, 8], &device));
        for (name, lean, plain) in LAYERS {
            let all = [&x, &gamma, &beta];
            assert_near(&run(all, lean), &run(all, plain), 1e-5, name);
        }
    }
}

#[test]
fn half_precision_layers_are_f32s_up_to_rounding() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let x = random([4, 8], &device).mul_scalar(2.0);
        let (gamma, beta) = (random([1, 8], &device), random([1, 8], &device));
        for (dtype, tolerance) in [(FloatDType::F16, 5e-3), (FloatDType::BF16, 4e-2)] {
            if !device.supports_dtype(dtype) {
                continue;
            }
            let x = x.clone().cast(dtype).cast(FloatDType::F32);
            let norm: Layer = |[x, gamma, beta]| layer_norm(x, vector(gamma), vector(beta), 1e-5);
            let expected = run([&x, &gamma, &beta], norm);
            let actual = run([&x, &gamma, &beta], |[x, gamma, beta]| {
                norm([x.cast(dtype), gamma, beta])
            });
            assert_near(&actual, &expected, tolerance, "layer norm");
            let expected = run([&x], |[x]| gelu(x, Gelu::Tanh));
            let actual = run([&x], |[x]| gelu(x.cast(dtype), Gelu::Tanh));
            assert_near(&actual, &expected, tolerance, "gelu");
        }
    }
}

/// Trap B59: squares of 300 do not fit in f16.
#[test]
fn norms_of_large_values_are_finite_in_f16() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let x: Tensor<2> = random([4, 8], &device).mul_scalar(1e4);
    let ones = Tensor::<1>::ones([8], &device);
    let y = rms_norm(x.clone().cast(FloatDType::F16), ones.clone(), 1e-5);
    let expected = values(rms_norm(x, ones, 1e-5));
    assert!(relative_error(&values(y), &expected) < 5e-3);
}

fn run_linear(layer: &Linear, x: &Tensor<3>, lean: bool) -> Vec<Vec<f32>> {
    let x = x.clone().detach().require_grad();
    let y = match lean {
        true => linear(layer, x.clone()),
        false => layer.forward(x.clone()),
    };
    let y = y.cast(FloatDType::F32);
    let weights = y.clone().detach().mul_scalar(0.3).sin();
    let grads = (y.clone() * weights).sum().backward();
    let bias = layer.bias.as_ref().unwrap();
    vec![
        values(y),
        values(x.grad(&grads).unwrap()),
        values(layer.weight.base().grad(&grads).unwrap()),
        values(bias.base().grad(&grads).unwrap()),
    ]
}

#[test]
fn linear_equals_burns_and_its_gradients_are_f32() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let layer = LinearConfig::new(8, 8).init(&device);
        let x = random([1, 4, 8], &device);
        let expected = run_linear(&layer, &x, false);
        assert_near(&run_linear(&layer, &x, true), &expected, 1e-5, "linear");
        for (text, tolerance) in [("f16", 5e-3), ("bf16", 3e-2)] {
            let Ok(policy) = Policy::resolve(text, &device) else {
                continue;
            };
            let half = policy.attach(layer.clone(), &[]);
            let y = linear(&half, x.clone());
            assert_eq!(FloatDType::from(y.dtype()), policy.compute.dtype());
            let grads = y.sum().backward();
            let bias = half.bias.as_ref().unwrap().base();
            let grads = [
                half.weight.base().grad(&grads).unwrap().dtype(),
                bias.grad(&grads).unwrap().dtype(),
            ];
            assert!(
                grads
                    .iter()
                    .all(|dtype| FloatDType::from(*dtype) == FloatDType::F32)
            );
            assert_near(&run_linear(&half, &x, true), &expected, tolerance, text);
        }
    }
}

/// A product of a rotated query and key depends on the distance of their positions only.
#[test]
fn rotations_see_distances() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let rotary = Rotary::new(32, 8, 10_000.0, &device);
    let [q, k]: [Tensor<4>; 2] = [(); 2].map(|()| random([1, 1, 1, 8], &device));
    let product = |m, n| {
        let (q, k) = (rotary.rotate(q.clone(), m), rotary.rotate(k.clone(), n));
        values((q * k).sum())[0]
    };
    assert!((product(9, 4) - product(25, 20)).abs() < 1e-4);
    assert!((product(9, 4) - product(9, 5)).abs() > 1e-3);
    // Angle of the first pair is the position itself.
    let unit = Tensor::<4>::from_data([[[[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]], &device);
    let turned = values(rotary.rotate(unit, 3));
    assert!((turned[0] - 3f32.cos()).abs() < 1e-6 && (turned[4] - 3f32.sin()).abs() < 1e-6);
    // The derivative of a rotation is the rotation back.
    let x = q.detach().require_grad();
    let grads = rotary.rotate(x.clone(), 7).mul(k.clone()).sum().backward();
    let back = x.grad(&grads).unwrap();
    let turned = rotary.rotate(k.clone().inner(), 0);
    let undone = rotary.rotate(back, 7);
    assert!(relative_error(&values(undone), &values(turned)) < 1e-5);
}
