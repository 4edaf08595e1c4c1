//! Which blocks of a chain are recomputed, and where their inputs wait.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a checkpoint policy was refused.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum CheckpointError {
    /// The text names no policy.
    #[error(
        "unknown checkpoint policy '{0}': use none, cheap, every-block, every:N, sqrt, or one of \
         the last three with '+cheap'"
    )]
    Unknown(String),
    /// `every:0`, or no number at all.
    #[error("checkpoint policy '{0}': want a number of blocks from 1 on after 'every:'")]
    Every(String),
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
    /// Exactly these; blocks outside are kept, and there is no exception for the last. Ranges that
    /// reach over the end of the chain, or back over an earlier one, are cut.
    Ranges(Vec<Range<usize>>),
}

/// What a model recomputes.
///
/// String forms: `none`, `cheap`, `every-block`, `every:2`, `sqrt`, and `every-block+cheap` and so
/// on.
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

impl Segmentation {
    /// A chain of `blocks` in order, cut: each piece, and whether it is recomputed.
    pub fn pieces(&self, blocks: usize) -> Vec<(Range<usize>, bool)> {
        let size = match self {
            Self::None => return whole(0..blocks),
            Self::Every(size) => (*size).max(1),
            Self::Sqrt => blocks.div_ceil(ceil_sqrt(blocks).max(1)).max(1),
            Self::Ranges(ranges) => return around(ranges, blocks),
        };
        let starts = (0..blocks).step_by(size);
        starts
            .map(|start| {
                let end = (start + size).min(blocks);
                (start..end, end < blocks)
            })
            .collect()
    }
}

fn ceil_sqrt(n: usize) -> usize {
    let floor = n.isqrt();
    if floor * floor == n { floor } else { floor + 1 }
}

fn whole(range: Range<usize>) -> Vec<(Range<usize>, bool)> {
    let kept = (!range.is_empty()).then_some((range, false));
    kept.into_iter().collect()
}

fn around(ranges: &[Range<usize>], blocks: usize) -> Vec<(Range<usize>, bool)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for range in ranges {
        let (start, end) = (range.start.max(at), range.end.min(blocks));
        if start < end {
            pieces.extend(whole(at..start));
            pieces.push((start..end, true));
            at = end;
        }
    }
    pieces.extend(whole(at..blocks));
    pieces
}

impl fmt::Display for CheckpointPolicy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.segments {
            Segmentation::None if self.cheap => return f.write_str("cheap"),
            Segmentation::None => f.write_str("none"),
            Segmentation::Every(1) => f.write_str("every-block"),
            Segmentation::Every(size) => write!(f, "every:{size}"),
            Segmentation::Sqrt => f.write_str("sqrt"),
            Segmentation::Ranges(ranges) => {
                f.write_str("segments:")?;
                for (index, Range { start, end }) in ranges.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}{start}..{end}")?;
                }
                Ok(())
            }
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
                Some(("segments", ranges)) => ranges
                    .split(',')
                    .map(|range| {
                        let (start, end) = range.split_once("..")?;
                        Some(start.parse().ok()?..end.parse().ok()?)
                    })
                    .collect::<Option<_>>()
                    .map(Segmentation::Ranges)
                    .ok_or_else(unknown)?,
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

    fn sizes(text: &str, blocks: usize) -> Vec<(usize, bool)> {
        let policy: CheckpointPolicy = text.parse().unwrap();
        let pieces = policy.segments.pieces(blocks);
        let mut at = 0;
        for (range, _) in &pieces {
            assert_eq!(range.start, at, "{text}: no gap, no overlap");
            assert!(!range.is_empty());
            at = range.end;
        }
        assert_eq!(at, blocks);
        pieces
            .into_iter()
            .map(|(range, again)| (range.len(), again))
            .collect()
    }

    #[test]
    fn chains_are_cut_as_said_and_the_last_piece_is_kept() {
        assert_eq!(sizes("none", 5), [(5, false)]);
        assert_eq!(sizes("cheap", 5), [(5, false)]);
        assert_eq!(sizes("every-block", 3), [(1, true), (1, true), (1, false)]);
        assert_eq!(sizes("every:2", 5), [(2, true), (2, true), (1, false)]);
        assert_eq!(sizes("every:9", 5), [(5, false)]);
        assert_eq!(
            sizes("sqrt", 12),
            [(3, true), (3, true), (3, true), (3, false)]
        );
        assert_eq!(sizes("sqrt", 48).last(), Some(&(6, false)));
        assert_eq!(sizes("sqrt", 0), []);
        assert_eq!(sizes("sqrt", 1), [(1, false)]);
        assert_eq!(
            sizes("segments:1..3,2..9", 5),
            [(1, false), (2, true), (2, true)]
        );
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
            "segments:0..2,3..5+cheap",
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
            "segments:3",
            "cheap+cheap",
        ] {
            let error = text.parse::<CheckpointPolicy>().unwrap_err();
            assert_eq!(error, CheckpointError::Unknown(text.into()));
        }
        for text in ["every:0", "every:x", "every:"] {
            let error = text.parse::<CheckpointPolicy>().unwrap_err();
            assert_eq!(error, CheckpointError::Every(text.into()));
        }
        assert!("disk".parse::<Offload>().is_err());
    }
}
