//! Seeds made of seeds: every random choice is a function of (seed, epoch, index), never of what ran before it.

/// A well-mixed number from two (SplitMix64's finaliser: Steele, Lea and Flood, 2014).
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// `bits` as a number in -1..1.
pub(crate) fn signed_unit(bits: u64) -> f32 {
    // 24 bits: as many as an f32 holds exactly.
    (bits >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn neighbouring_seeds_and_indices_do_not_collide() {
        let seen: HashSet<u64> = (0..100)
            .flat_map(|a| (0..100).map(move |b| mix(mix(7, a), b)))
            .collect();
        assert_eq!(seen.len(), 10_000);
    }

    #[test]
    fn signed_unit_covers_its_range() {
        assert_eq!(signed_unit(0), -1.0);
        assert!((0.999..1.0).contains(&signed_unit(u64::MAX)));
    }
}
