//! Many numbers to their levels at once.

use crate::int8::Affine;

/// Adding this to a small value leaves its rounded integer in the low bits of the mantissa.
const ROUND: f32 = 12_582_912.0;

/// What [`Affine::level`] says, in arithmetic that vectorises; NaN becomes the lowest level.
#[inline(always)]
fn level(map: Affine, value: f32) -> u8 {
    let zero = f32::from(map.zero_point);
    // The bounds are integers, so clamping first changes no result and keeps `ROUND` valid.
    let steps = (value / map.scale).max(-zero).min(255.0 - zero);
    let rounded = (steps + ROUND).to_bits().wrapping_sub(ROUND.to_bits());
    rounded.wrapping_add(u32::from(map.zero_point)) as u8
}

/// The level of each value. Panics unless both have the same length.
pub fn levels(map: Affine, values: &[f32], levels: &mut [u8]) {
    assert_eq!(values.len(), levels.len(), "one level a value");
    pulp::Arch::new().dispatch(Levels {
        map,
        values,
        levels,
    });
}

/// A struct and not a closure, so that it is certain to be compiled for the machine.
struct Levels<'a> {
    map: Affine,
    values: &'a [f32],
    levels: &'a mut [u8],
}

impl pulp::NullaryFnOnce for Levels<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (level_of, value) in self.levels.iter_mut().zip(self.values) {
            *level_of = level(self.map, *value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_rounded_like_one() {
        for (low, high) in [
            (-1.0, 3.0),
            (0.0, 6.0),
            (-2.0, 0.0),
            (0.0, 0.0),
            (-1e30, 1e30),
        ] {
            let map = Affine::spanning(low, high);
            let (from, step) = (2.0 * low - 1.0, (high - low + 1.0) / 300.0);
            let mut values: Vec<f32> = (0..1000).map(|i| from + i as f32 * step).collect();
            values.extend([f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0]);
            // Exactly between two levels.
            values.extend((-9..9).map(|i| (i as f32 + 0.5) * map.scale));
            let mut got = vec![0; values.len()];
            levels(map, &values, &mut got);
            let wanted: Vec<u8> = values.iter().map(|value| map.level(*value)).collect();
            assert_eq!(got, wanted, "{low}..{high}");
        }
    }
}
