#[cfg(test)]
mod tests;

use crate::random::mix;

/// A random order of `0..len` that takes no memory: four rounds of a Feistel network on the next power of four, walked
/// on where it leaves the range (Black and Rogaway, *Ciphers with Arbitrary Finite Domains*, 2002).
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    len: u64,
    half: u32,
    seed: u64,
}

impl Permutation {
    pub fn new(len: u64, seed: u64) -> Permutation {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Permutation {
            len,
            half: bits.div_ceil(2).max(1),
            seed,
        }
    }

    /// Where `index`, which is below the length, comes in the order.
    pub fn at(&self, index: u64) -> u64 {
        let mut value = index;
        loop {
            value = self.scramble(value);
            if value < self.len {
                return value;
            }
        }
    }

    fn scramble(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half) - 1;
        let (mut left, mut right) = (value >> self.half, value & mask);
        for round in 0..4 {
            let mixed = mix(self.seed ^ round, right) & mask;
            (left, right) = (right, left ^ mixed);
        }
        left << self.half | right
    }
}
