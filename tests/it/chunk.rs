//! Chunked attention and cross-entropy are exact, and hold no tensor of the size that they avoid.

use burn::nn::loss::CrossEntropyLossConfig;
use burn::tensor::module::attention as plain_attention;
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Bool, Device, FloatDType, Int, Tensor};
use leanburn::levers::{Attention, CrossEntropy};
use leanburn::memory::heap;
use proptest::prelude::*;

use crate::support::{alone, devices, is_flex, random, relative_error, values};

/// Output and the gradients for query, key and value.
type Attended = [Vec<f32>; 4];

fn run(
    inputs: &[Tensor<4>; 3],
    f: impl FnOnce(Tensor<4>, Tensor<4>, Tensor<4>) -> Tensor<4>,
) -> Attended {
    let [q, k, v] = inputs.clone().map(|x| x.detach().require_grad());
    let y = f(q.clone(), k.clone(), v.clone());
    let weights = y
        .clone()
        .detach()
        .cast(FloatDType::F32)
        .mul_scalar(3.0)
        .sin();
    let loss = (y.clone().cast(FloatDType::F32) * weights).sum();
    let grads = loss.backward();
    let grad = |x: &Tensor<4>| values(x.grad(&grads).unwrap());
    [values(y), grad(&q), grad(&k), grad(&v)]
}

fn lean(inputs: &[Tensor<4>; 3], rule: Attention, padding: Option<Tensor<2, Bool>>) -> Attended {
    run(inputs, |q, k, v| rule.forward(q, k, v, padding))
}

fn burns(inputs: &[Tensor<4>; 3], causal: bool, padding: Option<Tensor<2, Bool>>) -> Attended {
    let [batch, heads, queries, _] = inputs[0].dims();
    let keys = inputs[1].dims()[2];
    let mask = padding.map(|padding| {
        padding
            .reshape([batch, 1, 1, keys])
            .expand([batch, heads, queries, keys])
    });
    let options = AttentionModuleOptions {
        is_causal: causal,
        ..Default::default()
    };
    run(inputs, |q, k, v| {
        plain_attention(q, k, v, mask, None, options)
    })
}

fn inputs(shape: [usize; 4], device: &Device) -> [Tensor<4>; 3] {
    [(); 3].map(|()| random(shape, device))
}

fn padding(rows: &[&[bool]], device: &Device) -> Tensor<2, Bool> {
    let flat: Vec<i64> = rows
        .iter()
        .flat_map(|row| row.iter().map(|v| i64::from(*v)))
        .collect();
    let flat = Tensor::<1, Int>::from_data(flat.as_slice(), device);
    flat.reshape([rows.len(), rows[0].len()]).equal_elem(1)
}

/// Against the largest of all: the gradient for the query of a single key is nothing but rounding.
fn assert_near(actual: &Attended, expected: &Attended, tolerance: f32, what: &str) {
    let largest = expected
        .iter()
        .flatten()
        .fold(0.0f32, |max, v| max.max(v.abs()));
    for (name, (actual, expected)) in ["y", "dq", "dk", "dv"]
        .iter()
        .zip(actual.iter().zip(expected))
    {
        let differences = actual.iter().zip(expected).map(|(a, e)| (a - e).abs());
        let error = differences.fold(0.0, f32::max) / largest;
        assert!(actual.iter().all(|v| v.is_finite()), "{what} {name}");
        assert!(error <= tolerance, "{what} {name}: {error}");
    }
}

#[test]
fn attention_is_exact() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let inputs = inputs([2, 1, 8, 8], &device);
        let hidden = padding(
            &[
                &[false, false, false, false, false, false, true, true],
                &[false, true, false, true, false, false, true, false],
            ],
            &device,
        );
        // One size of chunk is enough where every shape is tuned for.
        let chunks: &[_] = if is_flex(&device) {
            &[0, 1, 2, 3, 7]
        } else {
            &[4]
        };
        for chunk in chunks {
            for causal in [false, true] {
                for padding in [None, Some(hidden.clone())] {
                    let rule = Attention {
                        causal,
                        ..Attention::default()
                    }
                    .with_chunk(*chunk);
                    let expected = burns(&inputs, causal, padding.clone());
                    let what = format!(
                        "{device:?} chunk {chunk} causal {causal} {}",
                        padding.is_some()
                    );
                    assert_near(&lean(&inputs, rule, padding), &expected, 1e-5, &what);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn attention_is_exact_for_any_sizes(
        (batch, heads, tokens, width) in (1usize..3, 1usize..4, 1usize..20, 1usize..9),
        (queries, keys) in (0usize..22, 0usize..22),
        causal: bool,
    ) {
        let _alone = alone();
        let device = Device::flex().autodiff();
        let inputs = inputs([batch, heads, tokens, width], &device);
        let rule = Attention { causal, queries, keys };
        assert_near(&lean(&inputs, rule, None), &burns(&inputs, causal, None), 2e-5, "attention");
    }

    #[test]
    fn packed_attention_is_the_separate_one(
        (batch, heads, tokens) in (1usize..3, 1usize..4, 1usize..12),
        chunk in 0usize..13,
    ) {
        let _alone = alone();
        let device = Device::flex().autodiff();
        let width = heads * 4;
        let qkv: Tensor<3> = random([batch, tokens, 3 * width], &device);
        let packed = qkv.clone().detach().require_grad();
        let rule = Attention::causal().with_chunk(chunk);
        let y = rule.packed(packed.clone(), heads, None);
        let grads = (y.clone() * y.clone().detach().sin()).sum().backward();
        let apart = qkv.detach().require_grad();
        let parts = apart.clone().chunk(3, 2).into_iter().map(|part| {
            part.reshape([batch, tokens, heads, 4]).swap_dims(1, 2)
        });
        let [q, k, v] = <[_; 3]>::try_from(parts.collect::<Vec<_>>()).unwrap();
        let z = rule.forward(q, k, v, None).swap_dims(1, 2).reshape([batch, tokens, width]);
        let other = (z.clone() * z.clone().detach().sin()).sum().backward();
        prop_assert!(relative_error(&values(y), &values(z)) < 1e-6);
        let [ours, theirs] = [packed.grad(&grads), apart.grad(&other)].map(|g| values(g.unwrap()));
        prop_assert!(relative_error(&ours, &theirs) < 1e-5);
    }
}

/// The last query stands at the last key: what a cache needs.
#[test]
fn fewer_queries_are_the_last_ones() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let [q, k, v] = inputs([2, 2, 9, 4], &device);
    let whole = Attention::causal().forward(q.clone(), k.clone(), v.clone(), None);
    let last = q.slice([0..2, 0..2, 5..9, 0..4]);
    let last = Attention::causal().with_chunk(3).forward(last, k, v, None);
    let whole = values(whole.slice([0..2, 0..2, 5..9, 0..4]));
    assert!(relative_error(&values(last), &whole) < 1e-5);
}

/// Traps B53 and B56: no constant that f16 cannot hold, no NaN where a query sees nothing.
#[test]
fn a_query_that_sees_nothing_gives_zeros_and_finite_gradients() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let seen = [false, false, true, true, true, false, true, true];
        let hidden = padding(&[&[true; 8], &seen], &device);
        for dtype in [FloatDType::F32, FloatDType::F16, FloatDType::BF16] {
            if !device.supports_dtype(dtype) {
                continue;
            }
            let inputs = inputs([2, 1, 8, 8], &device).map(|x| x.cast(dtype));
            for causal in [false, true] {
                let rule = Attention {
                    causal,
                    ..Attention::default()
                }
                .with_chunk(4);
                let [y, dq, dk, dv] = lean(&inputs, rule, Some(hidden.clone()));
                for (what, all) in [("y", &y), ("dq", &dq), ("dk", &dk), ("dv", &dv)] {
                    assert!(all.iter().all(|v| v.is_finite()), "{dtype:?} {what}");
                    assert!(all[..64].iter().all(|v| *v == 0.0), "{dtype:?} {what}");
                    assert!(all[64..].iter().any(|v| *v != 0.0), "{dtype:?} {what}");
                }
                let wide = inputs.clone().map(|x| x.cast(FloatDType::F32));
                let [expected, ..] = lean(&wide, rule, Some(hidden.clone()));
                let tolerance = if dtype == FloatDType::BF16 {
                    3e-2
                } else {
                    5e-3
                };
                assert!(relative_error(&y, &expected) < tolerance, "{dtype:?}");
            }
        }
    }
}

/// Scores of 7e4 do not fit in f16: the queries are scaled first, and softmax is f32.
#[test]
fn large_scores_do_not_overflow_in_f16() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let inputs =
        [(); 3].map(|()| Tensor::<4>::full([1, 1, 4, 64], 40.0, &device).cast(FloatDType::F16));
    let [y, ..] = lean(&inputs, Attention::causal(), None);
    assert!(y.iter().all(|v| (v - 40.0).abs() < 0.1), "{y:?}");
}

fn peak_above(f: impl FnOnce()) -> u64 {
    heap::reset_peak();
    let before = heap::current();
    f();
    heap::peak() - before
}

fn attention_peak(tokens: usize, chunk: Option<usize>) -> u64 {
    let device = Device::flex().autodiff();
    let inputs = inputs([1, 8, tokens, 64], &device).map(|x| x.require_grad());
    let [q, k, v] = inputs;
    peak_above(|| {
        let [q, k, v] = [&q, &k, &v].map(Clone::clone);
        let y = match chunk {
            Some(chunk) => Attention::default()
                .with_chunk(chunk)
                .forward(q, k, v, None),
            None => plain_attention(q, k, v, None, None, AttentionModuleOptions::default()),
        };
        drop(y.sum().backward());
    })
}

#[test]
fn attention_takes_a_fifth_of_burns_peak() {
    let _alone = alone();
    let default = Attention::default().queries;
    let (lean, plain) = (
        attention_peak(2048, Some(default)),
        attention_peak(2048, None),
    );
    let ratio = lean as f64 / plain as f64;
    println!("attention, 2048 tokens: {lean} of {plain} bytes, {ratio:.3}");
    assert!(ratio <= 0.20, "{lean} of {plain} bytes: {ratio}");
}

#[test]
fn peak_grows_linearly_with_the_sequence() {
    let _alone = alone();
    let peaks = [512, 1024, 2048, 4096]
        .map(|tokens| (tokens as f64, attention_peak(tokens, Some(128)) as f64));
    let logs = peaks.map(|(tokens, peak)| (tokens.ln(), peak.ln()));
    let mean = |f: fn(&(f64, f64)) -> f64| logs.iter().map(f).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let slope = logs.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / logs.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>();
    println!("exponent {slope:.3} of {peaks:?}");
    assert!(slope <= 1.1, "exponent {slope}: {peaks:?}");
}

/// Loss and the gradients for hidden states and head.
fn head(
    hidden: &Tensor<2>,
    weight: &Tensor<2>,
    f: impl FnOnce(Tensor<2>, Tensor<2>) -> Tensor<1>,
) -> [Vec<f32>; 3] {
    let [h, w] = [hidden, weight].map(|x| x.clone().detach().require_grad());
    let loss = f(h.clone(), w.clone());
    let grads = loss.clone().mul_scalar(2.0).backward();
    [
        values(loss),
        values(h.grad(&grads).unwrap()),
        values(w.grad(&grads).unwrap()),
    ]
}

#[test]
fn cross_entropy_is_exact() {
    let _alone = alone();
    for device in devices() {
        let device = device.autodiff();
        let (hidden, weight) = (random([4, 8], &device), random([8, 8], &device));
        let targets = Tensor::<1, Int>::from_data([3, 7, 0, 3], &device);
        for smoothing in [0.0, 0.1] {
            let expected = head(&hidden, &weight, |h, w| {
                let config = CrossEntropyLossConfig::new();
                let config = if smoothing > 0.0 {
                    config.with_smoothing(Some(smoothing as f32))
                } else {
                    config
                };
                config
                    .init(&device)
                    .forward(h.matmul(w.transpose()), targets.clone())
            });
            let chunks: &[_] = if is_flex(&device) {
                &[0, 1, 3, 100]
            } else {
                &[4]
            };
            for chunk in chunks {
                let loss = CrossEntropy {
                    chunk: Some(*chunk),
                    smoothing,
                    ..CrossEntropy::default()
                };
                let actual = head(&hidden, &weight, |h, w| loss.mean(h, w, targets.clone()));
                for (actual, expected) in actual.iter().zip(&expected) {
                    let error = relative_error(actual, expected);
                    assert!(
                        error < 1e-5,
                        "{device:?} chunk {chunk} smoothing {smoothing}: {error}"
                    );
                }
            }
        }
    }
}

/// Trap B12, in the loss: padding does not count, and nothing to count is no NaN.
#[test]
fn ignored_targets_do_not_count() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let (hidden, weight): (Tensor<2>, _) = (random([6, 8], &device), random([9, 8], &device));
    let some = Tensor::<1, Int>::from_data([3, -100, 0, -100, 8, -100], &device);
    let loss = CrossEntropy {
        chunk: Some(2),
        ..CrossEntropy::default()
    };
    let rows = Tensor::<1, Int>::from_data([0, 2, 4], &device);
    let targets = Tensor::<1, Int>::from_data([3, 0, 8], &device);
    let expected = head(&hidden, &weight, |h, w| {
        loss.mean(h.select(0, rows), w, targets)
    });
    let actual = head(&hidden, &weight, |h, w| loss.mean(h, w, some));
    for (actual, expected) in actual.iter().zip(&expected) {
        assert!(relative_error(actual, expected) < 1e-6);
    }
    let none = Tensor::<1, Int>::from_data([-100; 6], &device);
    for all in head(&hidden, &weight, |h, w| loss.mean(h, w, none)) {
        assert!(all.iter().all(|v| *v == 0.0));
    }
}

#[test]
fn half_precision_loss_is_f32s_up_to_rounding() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let (hidden, weight): (Tensor<2>, _) = (random([4, 8], &device), random([8, 8], &device));
    let targets = Tensor::<1, Int>::from_data([3, 7, 0, 3], &device);
    let loss = CrossEntropy::default();
    let expected = head(&hidden, &weight, |h, w| loss.mean(h, w, targets.clone()));
    for (dtype, tolerance) in [(FloatDType::F16, 5e-3), (FloatDType::BF16, 3e-2)] {
        let actual = head(&hidden, &weight, |h, w| {
            loss.mean(h.cast(dtype), w, targets.clone())
        });
        for (actual, expected) in actual.iter().zip(&expected) {
            let error = relative_error(actual, expected);
            assert!(error < tolerance, "{dtype:?}: {error}");
        }
    }
}

#[test]
fn cross_entropy_takes_a_seventh_of_the_plain_peak() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let hidden: Tensor<2> = random([1024, 256], &device).require_grad();
    let weight: Tensor<2> = random([50_257, 256], &device).require_grad();
    let targets = Tensor::<1, Int>::arange(0..1024, &device).mul_scalar(49);
    let lean = peak_above(|| {
        let loss = CrossEntropy::default().mean(hidden.clone(), weight.clone(), targets.clone());
        drop(loss.backward());
    });
    let plain = peak_above(|| {
        let logits = hidden.clone().matmul(weight.clone().transpose());
        let loss = CrossEntropyLossConfig::new().init(&device);
        drop(loss.forward(logits, targets.clone()).backward());
    });
    let ratio = lean as f64 / plain as f64;
    println!("cross-entropy, 1024 x 50257: {lean} of {plain} bytes, {ratio:.3}");
    assert!(ratio <= 0.15, "{lean} of {plain} bytes: {ratio}");
}
