//! How a chain of blocks is run: which are kept, which are recomputed, and from where.

use std::fmt;
use std::str::FromStr;

/// The pieces of a chain, in order.
///
/// As text, pieces are separated by commas: `4` keeps what four blocks want for their backward, `4c` the same
/// without the outputs of their norms and activations, `(..)` runs the pieces inside again in the backward from
/// what went into the first, and `host(..)` the same from an input that waits in host memory. `3*(1)` is
/// `(1),(1),(1)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule(pub Vec<Piece>);

/// A piece of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Blocks that keep what they need.
    Kept {
        /// How many, 1 or more.
        blocks: usize,
        /// But not the outputs of norms and activations.
        cheap: bool,
    },
    /// Run again in the backward, from their input.
    Again {
        /// What is done there the second time; not empty.
        pieces: Schedule,
        /// The input waits in host memory.
        parked: bool,
    },
}

/// A text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("want pieces such as 4, 4c, (2), host(2), 3*(1) with commas between, and found '{0}'")]
pub struct ScheduleError(pub String);

/// Deeper nesting than any planner writes is refused before it fills the stack.
const DEEPEST: usize = 64;
/// More blocks than any model has.
const MOST: usize = 1 << 20;

impl Piece {
    /// One block, kept.
    pub const ONE: Self = Self::Kept {
        blocks: 1,
        cheap: false,
    };

    /// How many blocks it is made of.
    pub fn blocks(&self) -> usize {
        match self {
            Self::Kept { blocks, .. } => *blocks,
            Self::Again { pieces, .. } => pieces.blocks(),
        }
    }
}

impl Schedule {
    /// How many blocks it is for.
    pub fn blocks(&self) -> usize {
        self.0.iter().map(Piece::blocks).sum()
    }

    /// The same for a chain of `blocks`: what is over its end is cut, and what is missing is kept.
    pub fn fit(&self, blocks: usize) -> Self {
        let mut left = blocks;
        let mut pieces = self.cut(&mut left);
        if left > 0 {
            pieces.0.push(Piece::Kept {
                blocks: left,
                cheap: false,
            });
        }
        pieces
    }

    fn cut(&self, left: &mut usize) -> Self {
        let mut pieces = Vec::new();
        for piece in &self.0 {
            if *left == 0 {
                break;
            }
            pieces.push(match piece {
                Piece::Kept { blocks, cheap } => {
                    let blocks = (*blocks).min(*left);
                    *left -= blocks;
                    Piece::Kept {
                        blocks,
                        cheap: *cheap,
                    }
                }
                Piece::Again { pieces, parked } => Piece::Again {
                    pieces: pieces.cut(left),
                    parked: *parked,
                },
            });
        }
        Self(pieces)
    }

    /// Whether any block is run again.
    pub fn has_segments(&self) -> bool {
        let is_again = |piece: &Piece| matches!(piece, Piece::Again { .. });
        self.0.iter().any(is_again)
    }

    /// Whether any input waits in host memory.
    pub fn has_parked(&self) -> bool {
        self.0.iter().any(|piece| match piece {
            Piece::Kept { .. } => false,
            Piece::Again { pieces, parked } => *parked || pieces.has_parked(),
        })
    }

    /// The same with all inputs on the device.
    pub fn unparked(&self) -> Self {
        let of = |piece: &Piece| match piece {
            Piece::Again { pieces, .. } => Piece::Again {
                pieces: pieces.unparked(),
                parked: false,
            },
            kept => kept.clone(),
        };
        Self(self.0.iter().map(of).collect())
    }

    /// For each block, whether it goes without the outputs of norms and activations.
    pub fn cheap(&self) -> Vec<bool> {
        let of = |piece: &Piece| match piece {
            Piece::Kept { blocks, cheap } => vec![*cheap; *blocks],
            Piece::Again { pieces, .. } => pieces.cheap(),
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Neighbours that are kept alike become one piece.
    pub(super) fn push(&mut self, piece: Piece) {
        if let Piece::Kept { blocks, cheap } = piece
            && let Some(Piece::Kept {
                blocks: before,
                cheap: like,
            }) = self.0.last_mut()
            && *like == cheap
        {
            *before += blocks;
            return;
        }
        self.0.push(piece);
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut rest = &self.0[..];
        while let Some(piece) = rest.first() {
            let equal = rest.iter().take_while(|other| *other == piece).count();
            rest = &rest[equal..];
            if equal > 1 {
                write!(f, "{equal}*")?;
            }
            write!(f, "{piece}")?;
            if !rest.is_empty() {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Kept { blocks, cheap } => {
                write!(f, "{blocks}{}", if *cheap { "c" } else { "" })
            }
            Self::Again { pieces, parked } => {
                write!(f, "{}({pieces})", if *parked { "host" } else { "" })
            }
        }
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut reader = Reader {
            rest: text,
            depth: 0,
        };
        let schedule = reader.schedule()?;
        match reader.rest {
            "" => Ok(schedule),
            rest => Err(ScheduleError(rest.into())),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn schedule(&mut self) -> Result<Schedule, ScheduleError> {
        let mut schedule = Schedule::default();
        let mut blocks = 0usize;
        loop {
            let times = self.times()?;
            let piece = self.piece()?;
            // Before anything is repeated: a few characters can stand for more blocks than memory holds.
            blocks = blocks.saturating_add(piece.blocks().saturating_mul(times));
            if blocks > MOST {
                return Err(self.wrong());
            }
            for _ in 0..times {
                schedule.push(piece.clone());
            }
            if !self.take(",") {
                return Ok(schedule);
            }
        }
    }

    fn times(&mut self) -> Result<usize, ScheduleError> {
        let (number, rest) = self.number();
        let Some(rest) = rest.strip_prefix('*') else {
            return Ok(1);
        };
        match number {
            Some(times) => {
                self.rest = rest;
                Ok(times)
            }
            None => Err(self.wrong()),
        }
    }

    /// The number that stands next, if it is one from 1 to [`MOST`], and what is behind its digits.
    fn number(&self) -> (Option<usize>, &'a str) {
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest.split_at(digits);
        let number = number.parse().ok();
        (number.filter(|number| (1..=MOST).contains(number)), rest)
    }

    fn piece(&mut self) -> Result<Piece, ScheduleError> {
        let parked = self.take("host");
        if self.take("(") {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.wrong());
            }
            let pieces = self.schedule()?;
            self.depth -= 1;
            return match self.take(")") {
                true => Ok(Piece::Again { pieces, parked }),
                false => Err(self.wrong()),
            };
        }
        match self.number() {
            (Some(blocks), rest) if !parked => {
                self.rest = rest;
                Ok(Piece::Kept {
                    blocks,
                    cheap: self.take("c"),
                })
            }
            _ => Err(self.wrong()),
        }
    }

    fn take(&mut self, wanted: &str) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn wrong(&self) -> ScheduleError {
        ScheduleError(self.rest.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips_and_is_short() {
        for text in [
            "4",
            "4c",
            "2,(1)",
            "3*(1),2c,1",
            "host(2c,(1),2*(3))",
            "12*(1),(2,(2))",
        ] {
            let schedule: Schedule = text.parse().unwrap();
            assert_eq!(schedule.to_string(), text);
        }
        let long: Schedule = "(1),(1),(1),2c,1".parse().unwrap();
        assert_eq!(long.to_string(), "3*(1),2c,1");
        assert_eq!(long.blocks(), 6);
        assert_eq!(long.cheap(), [false, false, false, true, true, false]);
    }

    #[test]
    fn wrong_text_says_where() {
        for text in [
            "",
            ",",
            "0",
            "()",
            "(1",
            "1)",
            "1,,2",
            "host",
            "host3",
            "2d",
            "0*(1)",
            "99999999999999999999",
            "1048576*1048576",
            "1048576*(1048576)",
            "1048576*(1048576*(1))",
            "1000000,1000000",
        ] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
        let deep = "(".repeat(100_000);
        assert!(deep.parse::<Schedule>().is_err());
        assert_eq!("1,x".parse::<Schedule>(), Err(ScheduleError("x".into())));
    }

    #[test]
    fn inputs_come_back_from_the_host() {
        let schedule: Schedule = "host(2,host(1)),1".parse().unwrap();
        assert!(schedule.has_parked() && schedule.has_segments());
        let stay = schedule.unparked();
        assert_eq!(stay.to_string(), "(2,(1)),1");
        assert!(!stay.has_parked() && stay.has_segments());
        assert!(!"4,2c".parse::<Schedule>().unwrap().has_segments());
    }

    #[test]
    fn another_length_is_cut_or_kept() {
        let schedule: Schedule = "(2),3c".parse().unwrap();
        assert_eq!(schedule.fit(5), schedule);
        assert_eq!(schedule.fit(1).to_string(), "(1)");
        assert_eq!(schedule.fit(3).to_string(), "(2),1c");
        assert_eq!(schedule.fit(7).to_string(), "(2),3c,2");
        assert_eq!(schedule.fit(0), Schedule::default());
    }
}
