//! What a given schedule takes.

use std::ops::Range;

use super::{Block, Chain, Piece, Schedule};

/// What a schedule takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// The most bytes, above what lives through the whole step.
    pub peak: u64,
    /// Seconds beyond those of keeping everything.
    pub extra: f64,
    /// Bytes that move to the host and back.
    pub moved: u64,
}

impl Cost {
    fn then(&mut self, other: Self) {
        self.peak = self.peak.max(other.peak);
        self.extra += other.extra;
        self.moved = self.moved.saturating_add(other.moved);
    }
}

impl Chain {
    /// What a schedule takes; one of another length is [fitted](Schedule::fit).
    pub fn cost(&self, schedule: &Schedule) -> Cost {
        let schedule = schedule.fit(self.blocks.len());
        let mut cost = Cost::default();
        self.run(&schedule.0, 0..self.blocks.len(), 0, &mut cost);
        cost
    }

    /// Runs the blocks of `range` forward and backward while `held` bytes are kept for others. A range that ends
    /// with the chain has the head behind it, and one that ends [behind](Self::after) the head does not any more.
    fn run(&self, pieces: &[Piece], range: Range<usize>, held: u64, cost: &mut Cost) {
        let Some((piece, rest)) = pieces.split_first() else {
            if range == (self.blocks.len()..self.blocks.len()) {
                cost.peak = cost.peak.max(held.saturating_add(self.head));
            }
            return;
        };
        let behind = self.behind(range.end);
        let middle = range.start + piece.blocks();
        match piece {
            Piece::Kept { cheap, .. } => {
                let mut held = held;
                for block in &self.blocks[range.start..middle] {
                    let way = block.way(*cheap);
                    let forward = way.forward.saturating_add(behind);
                    cost.then(Cost {
                        peak: held.saturating_add(forward.max(way.backward)),
                        extra: way.extra,
                        moved: 0,
                    });
                    held = held.saturating_add(way.kept);
                }
                self.run(rest, middle..range.end, held, cost);
            }
            Piece::Again { pieces, parked } => {
                let fetched = match parked {
                    true => self.blocks[range.start].input,
                    false => 0,
                };
                let (alone, seconds) = self.alone(range.start..middle);
                let moved = self.host.unwrap_or(0.0) * fetched as f64;
                cost.then(Cost {
                    peak: held
                        .saturating_add(fetched)
                        .saturating_add(alone)
                        .saturating_add(behind),
                    extra: seconds + moved,
                    moved: fetched,
                });
                let input = match rest.first() {
                    Some(Piece::Again { parked: true, .. }) => 0,
                    _ => self.input(middle),
                };
                self.run(rest, middle..range.end, held.saturating_add(input), cost);
                let held = held.saturating_add(fetched);
                self.run(&pieces.0, range.start..self.after(middle), held, cost);
            }
        }
    }

    /// The gradients that are there while blocks before `end` run; none in the first forward.
    pub(super) fn behind(&self, end: usize) -> u64 {
        match end == self.blocks.len() {
            true => 0,
            false => self.blocks[end.min(self.blocks.len()) - 1].behind,
        }
    }

    /// The end of a segment whose turn comes again: the head has run then.
    pub(super) fn after(&self, end: usize) -> usize {
        match end == self.blocks.len() {
            true => end + 1,
            false => end,
        }
    }

    /// What goes into a block, or into the head.
    pub(super) fn input(&self, block: usize) -> u64 {
        self.blocks.get(block).map_or(self.output, |b| b.input)
    }

    /// The most bytes while blocks run forward and keep nothing, and the seconds of that.
    pub(super) fn alone(&self, range: Range<usize>) -> (u64, f64) {
        let mut most = 0;
        let mut seconds = 0.0;
        for index in range.clone() {
            let block = &self.blocks[index];
            let input = if index > range.start { block.input } else { 0 };
            most = most.max(input.saturating_add(block.alone));
            seconds += block.forward;
        }
        (most, seconds)
    }
}

impl Block {
    /// The way that is cheap or not; where there is no such way, the first.
    fn way(&self, cheap: bool) -> super::Way {
        let way = self.ways.iter().find(|way| way.cheap == cheap);
        way.or(self.ways.first()).copied().unwrap_or_default()
    }
}
