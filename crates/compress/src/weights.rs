//! Weights to integers.

use leanburn_levers::int8::LARGEST;
use serde::{Deserialize, Serialize};

use crate::tensors::Noise;

/// What has a scale of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// Every output channel, and every row of a table.
    #[default]
    Channel,
    /// The whole weight.
    Tensor,
}

/// A weight as integers.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounded {
    /// In the weight's order, -127 to 127.
    pub integers: Vec<i8>,
    /// What an integer is worth, per channel.
    pub scales: Vec<f32>,
    /// Of the whole weight.
    pub noise: Noise,
    /// SQNR of the channel that has the worst, dB; infinite where there is no noise.
    pub worst_channel: f64,
}

/// A value that is no number, where one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

/// Rounds `values` of shape `shape`, symmetric: `scale = max|w| / 127` per channel of `axis`, `w` becomes
/// `round(w / scale)`, half a step to the even neighbour.
///
/// Only -127 to 127 are used, so both ends of a channel come back and negation is exact. A channel of zeros
/// keeps a scale that is a normal number, and its zeros.
pub fn round(
    values: &[f32],
    shape: &[usize],
    axis: usize,
    granularity: Granularity,
) -> Result<Rounded, NotFinite> {
    let channels = shape[axis];
    let inner: usize = shape[axis + 1..].iter().product();
    let channel = |index: usize| index / inner % channels;
    let mut largest = vec![0.0f32; channels];
    let mut finite = true;
    for (index, value) in values.iter().enumerate() {
        finite &= value.is_finite();
        let largest = &mut largest[channel(index)];
        *largest = largest.max(value.abs());
    }
    if !finite {
        return Err(NotFinite);
    }
    if granularity == Granularity::Tensor {
        let all = largest.iter().copied().fold(0.0, f32::max);
        largest.fill(all);
    }
    let bound = f32::from(LARGEST);
    let scale = |largest: &f32| (largest / bound).max(f32::MIN_POSITIVE);
    let scales: Vec<f32> = largest.iter().map(scale).collect();
    let mut noises = vec![Noise::default(); channels];
    let integers = values.iter().enumerate().map(|(index, value)| {
        let (channel, scale) = (channel(index), scales[channel(index)]);
        let integer = (value / scale).round_ties_even().clamp(-bound, bound);
        noises[channel].add(Noise::of(std::iter::once((*value, integer * scale))));
        integer as i8
    });
    let integers = integers.collect();
    let mut noise = Noise::default();
    noises.iter().for_each(|channel| noise.add(*channel));
    let worst = noises.into_iter().map(Noise::sqnr);
    Ok(Rounded {
        integers,
        scales,
        noise,
        worst_channel: worst.fold(f64::INFINITY, f64::min),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(rounded: &Rounded, shape: &[usize], axis: usize) -> Vec<f32> {
        let inner: usize = shape[axis + 1..].iter().product();
        let scale = |index: usize| rounded.scales[index / inner % shape[axis]];
        let all = rounded.integers.iter().enumerate();
        all.map(|(index, integer)| f32::from(*integer) * scale(index))
            .collect()
    }

    /// Trap B63: both ends use the same integer, and -128 is never used.
    #[test]
    fn both_ends_come_back() {
        let values = [-2.54, 2.54, 0.02, -1.0];
        let rounded = round(&values, &[1, 4], 0, Granularity::Channel).unwrap();
        assert_eq!(rounded.integers, [-127, 127, 1, -50]);
        let ends = back(&rounded, &[1, 4], 0);
        assert_eq!(ends[1], -ends[0]);
        assert!((ends[1] - 2.54).abs() <= 2.54 * f32::EPSILON);
    }

    /// Trap B61: channels of zeros and of one value give numbers, and zeros stay zeros.
    #[test]
    fn zero_and_constant_channels() {
        let values = [0.0, 0.0, 9.0, 9.0, 1e-44, 0.0];
        let rounded = round(&values, &[3, 2], 0, Granularity::Channel).unwrap();
        assert!(rounded.scales.iter().all(|scale| scale.is_normal()));
        let back = back(&rounded, &[3, 2], 0);
        assert_eq!(back[..2], [0.0, 0.0]);
        assert!((back[2] - 9.0).abs() < 1e-6 && back[3] == back[2]);
        assert_eq!(back[4..], [0.0, 0.0]);
        assert!(!rounded.worst_channel.is_nan());
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for broken in [f32::NAN, f32::INFINITY] {
            let rounded = round(&[1.0, broken], &[2, 1], 0, Granularity::Channel);
            assert_eq!(rounded, Err(NotFinite));
        }
    }

    /// Trap B66: with ranges that differ, a scale per channel is worth more than 20 dB where it counts.
    #[test]
    fn a_loud_channel_does_not_drown_the_others() {
        let mut values: Vec<f32> = (0..64).map(|i| (i as f32 * 0.7).sin() * 0.1).collect();
        values[32..].iter_mut().for_each(|value| *value *= 100.0);
        let [channel, tensor] = [Granularity::Channel, Granularity::Tensor]
            .map(|each| round(&values, &[2, 32], 0, each).unwrap().worst_channel);
        assert!(channel >= tensor + 20.0, "{channel} {tensor}");
    }

    proptest! {
        #[test]
        fn values_move_by_half_a_step(
            values in prop::collection::vec(-1e3f32..1e3, 24),
            axis in 0usize..3,
        ) {
            let shape = [2, 3, 4];
            for granularity in [Granularity::Channel, Granularity::Tensor] {
                let rounded = round(&values, &shape, axis, granularity).unwrap();
                let inner: usize = shape[axis + 1..].iter().product();
                for (index, (value, got)) in values.iter().zip(back(&rounded, &shape, axis)).enumerate() {
                    let scale = rounded.scales[index / inner % shape[axis]];
                    prop_assert!((value - got).abs() <= 0.5001 * scale);
                }
            }
        }
    }
}
