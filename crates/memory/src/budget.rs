//! The memory there is, and whether a step fits into it.

use crate::{Bytes, Gpu, Prediction};

/// The memory there is, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// All of it.
    pub memory: Bytes,
    /// The card that has it.
    pub name: Option<String>,
    /// Whether driver and context take their share of it.
    pub on_gpu: bool,
}

/// How a peak compares with the memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// By so much.
    Fits(Bytes),
    /// By so little that what a prediction leaves out, or is off by, may exceed it.
    Barely(Bytes),
    /// So much is missing.
    Exceeds(Bytes),
    /// The backend cannot hold it, however much memory there is.
    Refused,
}

/// What the driver, the framework and the allocator's gaps want; trap B36. Twice the framework of a CUDA
/// context and a twentieth of the memory have held wherever people reported theirs.
const CONTEXT: u64 = 512 << 20;
/// Of a memory of bytes, what predictions were off by at worst (docs/accuracy.md), rounded up.
const ERROR: u64 = 50;

impl Budget {
    /// So many bytes, of a GPU or not.
    pub fn of(memory: Bytes, on_gpu: bool) -> Self {
        Self {
            memory,
            name: None,
            on_gpu,
        }
    }

    /// All of a card.
    pub fn card(gpu: &Gpu) -> Self {
        Self {
            memory: gpu.memory(),
            name: Some(gpu.name.clone()),
            on_gpu: true,
        }
    }

    /// Left free for what no prediction includes, or is off by.
    pub fn head_room(&self) -> Bytes {
        Bytes(match self.on_gpu {
            true => CONTEXT + self.memory.0 / 20,
            false => self.memory.0 / ERROR,
        })
    }

    /// What a prediction may need to fit for sure.
    pub fn usable(&self) -> Bytes {
        Bytes(self.memory.0.saturating_sub(self.head_room().0))
    }

    /// The smallest memory of this kind that so many bytes fit into for sure.
    pub fn smallest(&self, needed: Bytes) -> Bytes {
        let (fixed, parts) = match self.on_gpu {
            true => (CONTEXT, 20),
            false => (0, ERROR),
        };
        // memory - memory / parts >= needed + fixed
        let least = (needed.0.saturating_add(fixed)).div_ceil(parts - 1);
        Bytes(least.saturating_mul(parts))
    }

    /// Whether a predicted step fits.
    pub fn holds(&self, prediction: &Prediction) -> Fit {
        match prediction.refused {
            Some(_) => Fit::Refused,
            None => self.fits(prediction.needed()),
        }
    }

    /// Whether so many bytes fit.
    pub fn fits(&self, peak: Bytes) -> Fit {
        match self.memory.0.checked_sub(peak.0) {
            None => Fit::Exceeds(Bytes(peak.0 - self.memory.0)),
            Some(free) if free < self.head_room().0 => Fit::Barely(Bytes(free)),
            Some(free) => Fit::Fits(Bytes(free)),
        }
    }

    /// What [`fits`](Self::fits) or [`holds`](Self::holds) says, in one line.
    pub fn verdict(&self, fit: Fit) -> String {
        let memory = self.told();
        let room = self.head_room();
        match fit {
            Fit::Fits(free) => format!("fits into {memory}, {free} stay free"),
            Fit::Barely(free) if self.on_gpu => format!(
                "does not fit into {memory} for sure: {free} stay free, and driver, framework and gaps want about {room}"
            ),
            Fit::Barely(free) => format!(
                "does not fit into {memory} for sure: {free} stay free, and predictions can be off by {room}"
            ),
            Fit::Exceeds(missing) => format!("does not fit into {memory}: {missing} are missing"),
            Fit::Refused => "does not fit: the backend cannot hold it".into(),
        }
    }

    /// `the 24.0 GiB of an RTX 3090`, or the bytes.
    pub fn told(&self) -> String {
        match &self.name {
            Some(name) => format!("the {} of an {name}", self.memory),
            None => self.memory.to_string(),
        }
    }
}

impl Fit {
    /// For sure.
    pub fn is_sure(self) -> bool {
        matches!(self, Self::Fits(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn card(name: &str) -> Budget {
        Budget::card(Catalogue::builtin().find(name).unwrap())
    }

    /// Traps B31, B36: binary units throughout, and no fit to the last byte.
    #[test]
    fn nothing_fits_to_the_last_byte() {
        let card = card("rtx 3090");
        assert_eq!(card.memory, Bytes(24 << 30));
        assert!(card.fits(Bytes(20 << 30)).is_sure());
        assert_eq!(card.fits(Bytes((24 << 30) - 1)), Fit::Barely(Bytes(1)));
        assert!(
            card.verdict(card.fits(Bytes(25 << 30)))
                .contains("1.00 GiB are missing")
        );
        let bytes = Budget::of(Bytes(1000), false);
        assert_eq!(bytes.fits(Bytes(980)), Fit::Fits(Bytes(20)));
        assert_eq!(bytes.fits(Bytes(981)), Fit::Barely(Bytes(19)));
        assert_eq!(bytes.fits(Bytes(1001)), Fit::Exceeds(Bytes(1)));
    }

    /// What is sold as 24 GB and reports 23,034 MiB.
    #[test]
    fn a_card_of_24_gb_refuses_what_needs_23_5_gib() {
        let needed = Bytes((47 << 30) / 2);
        assert!(matches!(card("L4").fits(needed), Fit::Exceeds(_)));
        assert!(!card("rtx 3090").fits(needed).is_sure());
    }

    #[test]
    fn the_smallest_memory_is_just_enough() {
        for (budget, needed) in [
            (Budget::of(Bytes(0), false), 1u64),
            (Budget::of(Bytes(0), false), 98_765_432),
            (Budget::of(Bytes(0), true), 7 << 30),
        ] {
            let fits = |memory: u64| {
                let budget = Budget::of(Bytes(memory), budget.on_gpu);
                budget.fits(Bytes(needed)).is_sure()
            };
            let smallest = budget.smallest(Bytes(needed)).0;
            assert!(fits(smallest), "{needed}");
            assert!(!fits(smallest - smallest / 1000 - 50), "{needed}");
        }
    }
}
