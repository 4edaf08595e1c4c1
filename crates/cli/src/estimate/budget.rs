//! The memory there is.

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Bytes, Catalogue, Prediction};

use super::Args;

/// The memory there is, and whose it is.
#[derive(Clone, Debug)]
pub struct Budget {
    /// All of it.
    pub memory: Bytes,
    name: Option<String>,
    /// Whether driver and context take their share of it.
    on_gpu: bool,
}

/// How a peak compares with the memory there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// By so much.
    Fits(Bytes),
    /// By so little that the parts which a prediction leaves out may exceed it.
    Barely(Bytes),
    /// So much is missing.
    Exceeds(Bytes),
    /// The backend cannot hold it, however much memory there is.
    Refused,
}

/// What the driver, the framework and the allocator's gaps want; trap B36. Twice the framework of a CUDA
/// context and a twentieth of the memory have held wherever people reported theirs.
const CONTEXT: u64 = 512 << 20;

impl Budget {
    /// That of the flags, if they name one, for a step on a GPU or not.
    pub fn of(args: &Args, on_gpu: bool) -> Result<Option<Self>> {
        let named = |name: &String| -> Result<Self> {
            let catalogue = Catalogue::builtin();
            let gpu = catalogue.find(name)?;
            Ok(Self {
                memory: gpu.memory(),
                name: Some(gpu.name.clone()),
                on_gpu: true,
            })
        };
        if let Some(name) = &args.device {
            return named(name).map(Some);
        }
        Ok(args.memory.map(|memory| Self {
            memory,
            name: None,
            on_gpu,
        }))
    }

    /// Left free for what no prediction includes.
    pub fn head_room(&self) -> Bytes {
        match self.on_gpu {
            true => Bytes(CONTEXT + self.memory.0 / 20),
            false => Bytes(0),
        }
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

    /// One line.
    pub fn verdict(&self, peak: Bytes) -> String {
        let memory = match &self.name {
            Some(name) => format!("the {} of an {name}", self.memory),
            None => format!("{}", self.memory),
        };
        match self.fits(peak) {
            Fit::Fits(free) => format!("fits into {memory}, {free} stay free"),
            Fit::Barely(free) => format!(
                "does not fit into {memory} for sure: {free} stay free, and driver, framework and gaps want about {}",
                self.head_room()
            ),
            Fit::Exceeds(missing) => format!("does not fit into {memory}: {missing} are missing"),
            Fit::Refused => "does not fit: the backend cannot hold it".into(),
        }
    }
}

impl Fit {
    /// For sure.
    pub fn is_sure(self) -> bool {
        matches!(self, Self::Fits(_))
    }
}

/// 1 where there is a budget that it does not fit into for sure.
pub fn exit_code(fit: Option<Fit>) -> ExitCode {
    match fit {
        Some(fit) if !fit.is_sure() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traps B31, B36: binary units throughout, and no fit to the last byte on a real card.
    #[test]
    fn a_card_keeps_head_room_and_bytes_do_not() {
        let args = Args {
            device: Some("rtx 3090".into()),
            ..Args::default()
        };
        let card = Budget::of(&args, true).unwrap().unwrap();
        assert_eq!(card.memory, Bytes(24 << 30));
        assert!(card.fits(Bytes(20 << 30)).is_sure());
        assert_eq!(card.fits(Bytes((24 << 30) - 1)), Fit::Barely(Bytes(1)));
        assert!(
            card.verdict(Bytes(25 << 30))
                .contains("1.00 GiB are missing")
        );
        let bytes = Budget {
            memory: Bytes(1000),
            name: None,
            on_gpu: false,
        };
        assert_eq!(bytes.fits(Bytes(1000)), Fit::Fits(Bytes(0)));
        assert_eq!(bytes.fits(Bytes(1001)), Fit::Exceeds(Bytes(1)));
    }
}
