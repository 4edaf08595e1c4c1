//! The map between real numbers and uint8.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Steps between the 256 levels.
const STEPS: f32 = 255.0;

/// The smallest normal number: neither a scale nor a multiple of it is ever subnormal, which some devices
/// flush to zero.
const MIN_SCALE: f32 = f32::MIN_POSITIVE;

/// 255 steps of this are still finite.
const MAX_SCALE: f32 = f32::MAX / 256.0;

/// Asymmetric uint8: `real = scale * (level - zero_point)`, one scale for a whole tensor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affine {
    /// Distance of neighbouring levels, in the unit of the real numbers: positive.
    pub scale: f32,
    /// The level that stands for zero.
    pub zero_point: u8,
}

impl Affine {
    /// The map whose 256 levels span `low..=high`, widened to contain zero, and shifted by at most half a step
    /// to make zero a level.
    ///
    /// `scale = (high - low) / 255`, `zero_point = round(-low / scale)`, as in Jacob et al. 2018
    /// (<https://arxiv.org/abs/1712.05877>, section 3) and ONNX's DynamicQuantizeLinear. The scale is at least
    /// the smallest normal f32, so an empty range maps zero to zero, and at most 1/256 of the largest f32: a
    /// range wider than that saturates.
    pub fn spanning(low: f32, high: f32) -> Self {
        let (low, high) = (low.min(0.0), high.max(0.0));
        let width = f64::from(high) - f64::from(low);
        let scale = ((width / f64::from(STEPS)) as f32).clamp(MIN_SCALE, MAX_SCALE);
        Self {
            scale,
            zero_point: (-low / scale).round_ties_even() as u8,
        }
    }

    /// The level nearest to `x`, half a step to the even neighbour: `round(x / scale) + zero_point`, saturated,
    /// as ONNX's QuantizeLinear has it. NaN becomes zero.
    pub fn level(&self, x: f32) -> u8 {
        // The cast saturates, and makes 0 of NaN.
        let steps = (x / self.scale).round_ties_even() as i32;
        steps
            .saturating_add(self.zero_point.into())
            .clamp(0, u8::MAX.into()) as u8
    }

    /// The real number that a level stands for.
    pub fn real(&self, level: u8) -> f32 {
        self.scale * f32::from(i16::from(level) - i16::from(self.zero_point))
    }

    /// Every element as the nearest level's real number.
    pub fn round<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        let below = f32::from(self.zero_point);
        let steps = x.div_scalar(self.scale).round();
        steps.clamp(-below, STEPS - below).mul_scalar(self.scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::{Device, TensorData};

    #[test]
    fn zero_stays_zero() {
        for (low, high) in [
            (0.0, 0.0),
            (-1.0, 3.0),
            (0.0, 6.0),
            (-2.0, -1.0),
            (1.0, 2.0),
        ] {
            let map = Affine::spanning(low, high);
            assert!(map.scale.is_normal());
            assert_eq!(map.real(map.level(0.0)), 0.0, "{low}..{high}");
        }
        assert_eq!(Affine::spanning(0.0, 0.0).real(255), 255.0 * MIN_SCALE);
        let widest = Affine::spanning(f32::MIN, f32::MAX);
        assert!(widest.real(0).is_finite() && widest.real(255).is_finite());
    }

    #[test]
    fn values_move_by_half_a_step_and_saturate_outside() {
        let map = Affine::spanning(-1.0, 3.0);
        for x in (-100..=300).map(|x| x as f32 / 100.0) {
            assert!(
                (map.real(map.level(x)) - x).abs() <= map.scale * 0.5001,
                "{x}"
            );
        }
        assert_eq!((map.level(-9.0), map.level(9.0)), (0, 255));
        assert_eq!(map.level(f32::NAN), map.zero_point);
    }

    /// What a layer in integers and what a simulated one make of an input.
    #[test]
    fn tensors_are_rounded_like_numbers() {
        let map = Affine::spanning(-0.7, 2.1);
        let values: Vec<f32> = (-300..600).map(|x| x as f32 * 0.005).collect();
        let wanted: Vec<f32> = values.iter().map(|x| map.real(map.level(*x))).collect();
        let data = TensorData::new(values, [900]);
        let rounded = map.round(Tensor::<1>::from_data(data, &Device::flex()));
        assert_eq!(rounded.into_data().try_to_vec::<f32>().unwrap(), wanted);
    }
}
