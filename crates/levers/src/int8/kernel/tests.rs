//! Against loops that anyone can read, in 64 bits.

use proptest::prelude::*;

use super::{Conv, conv2d, linear};
use crate::int8::Affine;

fn pseudo(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 33
    }
}

fn floats(count: usize, seed: u64) -> Vec<f32> {
    let mut next = pseudo(seed);
    (0..count)
        .map(|_| next() as f32 / (1u64 << 31) as f32 * 4.0 - 1.0)
        .collect()
}

fn integers(count: usize, seed: u64) -> Vec<i8> {
    let mut next = pseudo(seed);
    (0..count).map(|_| (next() % 255) as i8).collect()
}

fn naive_linear([rows, inputs, outputs]: [usize; 3], x: &[f32], map: Affine, w: &[i8]) -> Vec<i64> {
    let mut sums = vec![0; rows * outputs];
    for r in 0..rows {
        for o in 0..outputs {
            sums[r * outputs + o] = (0..inputs)
                .map(|i| {
                    let level = i64::from(map.level(x[r * inputs + i]));
                    (level - i64::from(map.zero_point)) * i64::from(w[i * outputs + o])
                })
                .sum();
        }
    }
    sums
}

fn naive_conv(conv: &Conv, x: &[f32], map: Affine, w: &[i8]) -> Vec<i64> {
    let ([height, width], [kh, kw]) = (conv.input, conv.kernel);
    let [rows, columns] = conv.output().unwrap();
    let group_in = conv.channels_in / conv.groups;
    let group_out = conv.channels_out / conv.groups;
    let mut sums = Vec::new();
    for b in 0..conv.batch {
        for o in 0..conv.channels_out {
            for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
                let mut sum = 0;
                for i in 0..group_in {
                    for (a, e) in (0..kh).flat_map(|a| (0..kw).map(move |e| (a, e))) {
                        let y = (r * conv.stride[0] + a * conv.dilation[0]) as i64
                            - conv.padding[0] as i64;
                        let z = (c * conv.stride[1] + e * conv.dilation[1]) as i64
                            - conv.padding[1] as i64;
                        if !(0..height as i64).contains(&y) || !(0..width as i64).contains(&z) {
                            continue;
                        }
                        let channel = b * conv.channels_in + o / group_out * group_in + i;
                        let at = (channel * height + y as usize) * width + z as usize;
                        let level = i64::from(map.level(x[at])) - i64::from(map.zero_point);
                        sum += level * i64::from(w[((o * group_in + i) * kh + a) * kw + e]);
                    }
                }
                sums.push(sum);
            }
        }
    }
    sums
}

/// With scales of 1 and sums below 2^24 the results are the sums themselves.
fn unit(map: Affine) -> Affine {
    Affine { scale: 1.0, ..map }
}

fn exact(got: &[f32], sums: &[i64]) {
    let wanted: Vec<f32> = sums.iter().map(|sum| *sum as f32).collect();
    assert_eq!(got, wanted);
}

/// The largest products of one sign, where 16-bit sums of two would saturate, and odd depths.
#[test]
fn extremes_are_exact() {
    let map = Affine {
        scale: 1.0,
        zero_point: 0,
    };
    for inputs in [1, 2, 3, 255, 256, 257, 511] {
        for weight in [127, -127] {
            let x = vec![255.0; 7 * inputs];
            let w = vec![weight; inputs * 19];
            let sum = 255 * i64::from(weight) * inputs as i64;
            for rows in [1, 7] {
                let got = linear(
                    [rows, inputs, 19],
                    &x[..rows * inputs],
                    map,
                    &w,
                    &[1.0; 19],
                    None,
                );
                exact(&got, &vec![sum; rows * 19]);
            }
        }
    }
}

#[test]
fn scales_and_biases_belong_to_their_outputs() {
    let map = Affine::spanning(-1.0, 3.0);
    let (x, w) = (floats(2 * 3, 1), integers(3 * 4, 2));
    let (scales, bias) = ([1.0, 2.0, 0.5, 0.25], [1.0, -1.0, 0.0, 8.0]);
    let got = linear([2, 3, 4], &x, map, &w, &scales, Some(&bias));
    let sums = naive_linear([2, 3, 4], &x, map, &w);
    for (index, (got, sum)) in got.iter().zip(sums).enumerate() {
        let wanted = sum as f32 * map.scale * scales[index % 4] + bias[index % 4];
        assert!((got - wanted).abs() <= 1e-5 * wanted.abs().max(1.0));
    }
}

#[test]
fn nothing_gives_nothing() {
    let map = Affine::spanning(-1.0, 1.0);
    assert!(linear([0, 3, 4], &[], map, &[1; 12], &[1.0; 4], None).is_empty());
    let bias = linear([1, 0, 2], &[], map, &[], &[1.0; 2], Some(&[3.0, 4.0]));
    assert_eq!(bias, [3.0, 4.0]);
    let conv = Conv {
        batch: 0,
        channels_in: 1,
        channels_out: 1,
        input: [2, 2],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [0, 0],
        dilation: [1, 1],
        groups: 1,
    };
    assert!(conv2d(&conv, &[], map, &[1], &[1.0], None).is_empty());
    let missing = Conv {
        kernel: [3, 3],
        ..conv
    };
    assert_eq!(missing.output(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_linear_layer_is_exact(rows in 1usize..20, inputs in 1usize..300, outputs in 1usize..40, seed: u64) {
        let map = unit(Affine { scale: 1.0, zero_point: (seed % 256) as u8 });
        let x: Vec<f32> = floats(rows * inputs, seed).iter().map(|x| x * 100.0).collect();
        let w = integers(inputs * outputs, seed ^ 9);
        let got = linear([rows, inputs, outputs], &x, map, &w, &vec![1.0; outputs], None);
        exact(&got, &naive_linear([rows, inputs, outputs], &x, map, &w));
    }

    #[test]
    fn any_convolution_is_exact(
        (batch, groups, group_in, group_out) in (1usize..6, 1usize..4, 1usize..5, 1usize..5),
        input in [1usize..18, 1usize..18],
        kernel in [1usize..4, 1usize..4],
        stride in [1usize..4, 1usize..4],
        padding in [0usize..3, 0usize..3],
        dilation in [1usize..3, 1usize..3],
        seed: u64,
    ) {
        let conv = Conv {
            batch,
            channels_in: groups * group_in,
            channels_out: groups * group_out,
            input, kernel, stride, padding, dilation, groups,
        };
        let Some([rows, columns]) = conv.output() else {
            return Ok(());
        };
        prop_assume!(rows * columns > 0);
        let map = Affine { scale: 1.0, zero_point: (seed % 256) as u8 };
        let count = batch * conv.channels_in * input[0] * input[1];
        let x: Vec<f32> = floats(count, seed).iter().map(|x| x * 100.0).collect();
        let w = integers(conv.channels_out * conv.depth(), seed ^ 7);
        let got = conv2d(&conv, &x, map, &w, &vec![1.0; conv.channels_out], None);
        exact(&got, &naive_conv(&conv, &x, map, &w));
    }
}
