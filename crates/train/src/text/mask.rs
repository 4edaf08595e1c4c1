//! Which tokens an encoder has to fill in (Devlin et al. 2018, <https://arxiv.org/abs/1810.04805>, 3.1).

use leanburn_data::tokens::{HostTokens, IGNORE};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How tokens are masked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masking {
    /// Part of the tokens that is asked for.
    pub part: f64,
    /// Stands for eight of ten of them; one is a random token, one stays.
    pub token: i64,
    /// Random tokens are below it.
    pub tokens: i64,
    pub seed: u64,
}

impl Masking {
    /// Asks for some of a batch's input tokens instead of the next ones; `place` decides which.
    pub fn apply(&self, mut host: HostTokens, place: u64) -> HostTokens {
        let mut random =
            StdRng::seed_from_u64(self.seed ^ place.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        host.counted = 0;
        for (input, target) in host.inputs.iter_mut().zip(&mut host.targets) {
            let there = *target != IGNORE;
            if !(there && random.random_bool(self.part)) {
                *target = IGNORE;
                continue;
            }
            *target = *input;
            host.counted += 1;
            match random.random_range(0..10) {
                0 => *input = random.random_range(0..self.tokens),
                1 => {}
                _ => *input = self.token,
            }
        }
        host
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_asked_for_and_mostly_hidden() {
        let masking = Masking {
            part: 0.15,
            token: 50,
            tokens: 50,
            seed: 1,
        };
        let host = || HostTokens {
            inputs: (0..4000).map(|i| i % 50).collect(),
            targets: (0..4000)
                .map(|i| if i % 100 == 99 { IGNORE } else { (i + 1) % 50 })
                .collect(),
            batch: 4,
            context: 1000,
            reset: vec![true; 4],
            counted: 3960,
            visited: 4,
        };
        let masked = masking.apply(host(), 7);
        let asked: Vec<_> = (0..4000).filter(|i| masked.targets[*i] != IGNORE).collect();
        assert_eq!(asked.len(), masked.counted);
        assert!((500..700).contains(&asked.len()), "{}", asked.len());
        assert!(
            asked
                .iter()
                .all(|i| masked.targets[*i] == *i as i64 % 50 && i % 100 != 99)
        );
        let hidden = asked.iter().filter(|i| masked.inputs[**i] == 50).count();
        assert!((asked.len() * 7 / 10..asked.len() * 9 / 10).contains(&hidden));
        assert_eq!(masked, masking.apply(host(), 7));
        assert_ne!(masked, masking.apply(host(), 8));
    }
}
