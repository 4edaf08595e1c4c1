//! Which blocks of a chain are recomputed, and where their inputs wait.

use std::fmt;
use std::str::FromStr;

use leanburn_memory::chain::{Piece, Schedule, ScheduleError};
use serde::{Deserialize, Serialize};

/// Why a checkpoint policy was refused.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CheckpointError {
    /// The text names no policy.
    #[error(
        "unknown checkpoint policy '{0}': use none, cheap, every-block, every:N, sqrt, or one of \
         the last three with '+cheap', or schedule:PIECES"
    )]
    Unknown(String),
    /// `every:0`, or no number at all.
    #[error("checkpoint policy '{0}': want a number of blocks from 1 on after 'every:'")]
    Every(String),
    /// No schedule after `schedule:`.
    #[error("checkpoint policy 'schedule:': {0}")]
    Schedule(#[from] ScheduleError),
    /// The text names no place.
    #[error("unknown offload '{0}': use none or host")]
    Offload(String),
}

/// How a chain of `n` blocks is cut into segments that are recomputed as one.
///
/// The last segment is never recomputed: that would happen right after its forward, and save
/// nothing. So all but its activations are gone, and its forward is spared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Segmentation {
    /// Not at all.
    #[default]
    None,
    /// Segments of so many blocks, 1 or more.
    Every(usize),
    /// `ceil(sqrt(n))` segments: both what is kept and what is recomputed at once grow like the
    /// square root of the depth (Chen et al. 2016, <https://arxiv.org/abs/1604.06174>).
    Sqrt,
    /// Exactly this, as a planner writes it; there is no exception for the last. What is over the end of the
    /// chain is cut, and what is missing is kept.
    Schedule(Schedule),
}

/// What a model recomputes.
///
/// String forms: `none`, `cheap`, `every-block`, `every:2`, `sqrt`, and `every-block+cheap` and so
/// on, and `schedule:` with a [`Schedule`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CheckpointPolicy {
    /// Whole blocks.
    pub segments: Segmentation,
    /// Inside the blocks, norms and activations, from the output of the product before them.
    pub cheap: bool,
}

impl CheckpointPolicy {
    /// Nothing.
    pub const NONE: Self = Self::of(Segmentation::None);
    /// Norms and activations only.
    pub const CHEAP: Self = Self::NONE.with_cheap();
    /// Every block by itself.
    pub const EVERY_BLOCK: Self = Self::of(Segmentation::Every(1));
    /// Segments of about the square root of the depth.
    pub const SQRT: Self = Self::of(Segmentation::Sqrt);

    /// Whole blocks only.
    pub const fn of(segments: Segmentation) -> Self {
        Self {
            segments,
            cheap: false,
        }
    }

    /// Norms and activations too; inside recomputed blocks this lowers the peak of the recomputation.
    pub const fn with_cheap(mut self) -> Self {
        self.cheap = true;
        self
    }
}

impl CheckpointPolicy {
    /// What becomes of a chain of so many blocks.
    pub fn schedule(&self, blocks: usize) -> Schedule {
        let size = match &self.segments {
            Segmentation::None => blocks,
            Segmentation::Every(size) => (*size).max(1),
            Segmentation::Sqrt => blocks.div_ceil(ceil_sqrt(blocks).max(1)),
            Segmentation::Schedule(schedule) => return schedule.fit(blocks),
        };
        let cheap = self.cheap;
        let starts = (0..blocks).step_by(size.max(1));
        let pieces = starts.map(|start| {
            let kept = Piece::Kept {
                blocks: size.min(blocks - start),
                cheap,
            };
            match start + size < blocks {
                true => Piece::Again {
                    pieces: Schedule(vec![kept]),
                    parked: false,
                },
                false => kept,
            }
        });
        Schedule(pieces.collect())
    }

    /// The same with all inputs of recomputed blocks on the device.
    pub fn unparked(&self) -> Self {
        match &self.segments {
            Segmentation::Schedule(schedule) => {
                Self::of(Segmentation::Schedule(schedule.unparked()))
            }
            _ => self.clone(),
        }
    }

    /// Whether inputs of recomputed blocks are kept.
    pub fn has_segments(&self) -> bool {
        match &self.segments {
            Segmentation::None => false,
            Segmentation::Every(_) | Segmentation::Sqrt => true,
            Segmentation::Schedule(schedule) => schedule.has_segments(),
        }
    }

    /// Whether any of them wait in host memory by the schedule.
    pub fn has_parked(&self) -> bool {
        match &self.segments {
            Segmentation::Schedule(schedule) => schedule.has_parked(),
            _ => false,
        }
    }
}

fn ceil_sqrt(n: usize) -> usize {
    let floor = n.isqrt();
    if floor * floor == n { floor } else { floor + 1 }
}

impl fmt::Display for CheckpointPolicy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.segments {
            Segmentation::None if self.cheap => return f.write_str("cheap"),
            Segmentation::None => f.write_str("none"),
            Segmentation::Every(1) => f.write_str("every-block"),
            Segmentation::Every(size) => write!(f, "every:{size}"),
            Segmentation::Sqrt => f.write_str("sqrt"),
            Segmentation::Schedule(schedule) => return write!(f, "schedule:{schedule}"),
        }?;
        f.write_str(if self.cheap { "+cheap" } else { "" })
    }
}

impl FromStr for CheckpointPolicy {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        if text == "cheap" {
            return Ok(Self::CHEAP);
        }
        if let Some(schedule) = text.strip_prefix("schedule:") {
            return Ok(Self::of(Segmentation::Schedule(schedule.parse()?)));
        }
        let (segments, cheap) = match text.strip_suffix("+cheap") {
            Some(segments) => (segments, true),
            None => (text, false),
        };
        let unknown = || CheckpointError::Unknown(text.to_owned());
        let segments = match segments {
            "none" if !cheap => Segmentation::None,
            "every-block" => Segmentation::Every(1),
            "sqrt" => Segmentation::Sqrt,
            other => match other.split_once(':') {
                Some(("every", size)) => match size.parse() {
                    Ok(size) if size > 0 => Segmentation::Every(size),
                    _ => return Err(CheckpointError::Every(text.to_owned())),
                },
                _ => return Err(unknown()),
            },
        };
        Ok(Self { segments, cheap })
    }
}

impl From<CheckpointPolicy> for String {
    fn from(policy: CheckpointPolicy) -> String {
        policy.to_string()
    }
}

impl TryFrom<String> for CheckpointPolicy {
    type Error = CheckpointError;

    fn try_from(text: String) -> Result<Self, CheckpointError> {
        text.parse()
    }
}

/// Where the inputs of recomputed blocks wait for the backward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Offload {
    /// On the device.
    #[default]
    None,
    /// In host memory, moved back one block ahead. On a CPU backend that is the same memory, and
    /// nothing moves.
    Host,
}

impl Offload {
    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Host => "host",
        }
    }
}

impl FromStr for Offload {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        match text {
            "none" => Ok(Self::None),
            "host" => Ok(Self::Host),
            _ => Err(CheckpointError::Offload(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, blocks: usize) -> String {
        let policy: CheckpointPolicy = text.parse().unwrap();
        let schedule = policy.schedule(blocks);
        assert_eq!(schedule.blocks(), blocks, "{text}: no gap, no overlap");
        schedule.to_string()
    }

    #[test]
    fn chains_are_cut_as_said_and_the_last_piece_is_kept() {
        assert_eq!(cut("none", 5), "5");
        assert_eq!(cut("cheap", 5), "5c");
        assert_eq!(cut("every-block", 3), "2*(1),1");
        assert_eq!(cut("every-block+cheap", 3), "2*(1c),1c");
        assert_eq!(cut("every:2", 5), "2*(2),1");
        assert_eq!(cut("every:9", 5), "5");
        assert_eq!(cut("sqrt", 12), "3*(3),3");
        assert!(cut("sqrt", 48).ends_with(",6"));
        assert_eq!(cut("sqrt", 0), "");
        assert_eq!(cut("none", 0), "");
        assert_eq!(cut("sqrt", 1), "1");
        assert_eq!(cut("schedule:1,(2),(7c)", 5), "1,(2),(2c)");
        assert_eq!(cut("schedule:(2,host(1))", 5), "(2,host(1)),2");
    }

    #[test]
    fn string_forms_round_trip() {
        for text in [
            "none",
            "cheap",
            "every-block",
            "every:3",
            "sqrt",
            "sqrt+cheap",
            "every:2+cheap",
            "schedule:(2),1,(1c,(3))",
        ] {
            let policy: CheckpointPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
        assert_eq!("every:1".parse(), Ok(CheckpointPolicy::EVERY_BLOCK));
    }

    #[test]
    fn wrong_forms_say_what_is_wrong() {
        for text in [
            "",
            "all",
            "none+cheap",
            "every",
            "segments:0..3",
            "cheap+cheap",
        ] {
            let error = text.parse::<CheckpointPolicy>().unwrap_err();
            assert_eq!(error, CheckpointError::Unknown(text.into()));
        }
        for text in ["every:0", "every:x", "every:"] {
            let error = text.parse::<CheckpointPolicy>().unwrap_err();
            assert_eq!(error, CheckpointError::Every(text.into()));
        }
        for text in ["schedule:", "schedule:0", "schedule:2+cheap"] {
            let error = text.parse::<CheckpointPolicy>().unwrap_err();
            assert!(matches!(error, CheckpointError::Schedule(_)), "{error}");
        }
        assert!("disk".parse::<Offload>().is_err());
    }
}
