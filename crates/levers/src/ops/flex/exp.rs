//! The exponential in a form that compilers vectorise.

/// `e^x` to two units in the last place, for -87 to 88; beyond, the value at the border.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves the rounded number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    // ln 2 in two parts, of which the first has few digits: no rounding in the first product.
    let rest = x - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    // Cephes' `expf`.
    let mut poly = 1.987_569_1e-4;
    for coefficient in [
        1.398_199_9e-3,
        8.333_452e-3,
        4.166_579_6e-2,
        1.666_666_5e-1,
        0.5,
    ] {
        poly = poly * rest + coefficient;
    }
    let mantissa = poly * rest * rest + rest + 1.0;
    let power = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    mantissa * f32::from_bits(((power + 127) << 23) as u32)
}

/// `1 / (1 + e^-x)`
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_libraries() {
        for step in -87_000..88_000 {
            let x = step as f32 / 1000.0;
            let error = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
            assert!(error < 3e-7, "{x}: {error}");
        }
        assert!(exp(f32::NEG_INFINITY) < 1e-37 && exp(1e9).is_finite());
    }
}
