//! What the blocks of a model take, from traces of its step.

use std::ops::Range;

use super::{Block, Chain, Way};
use crate::Mark;
use crate::record::Point;
use crate::trace::{Counter, Rates, Replay, Runtime, Trace};

/// The same three updates, traced under three schedules.
#[derive(Clone, Copy, Debug)]
pub struct Traces<'a> {
    /// Every block kept.
    pub kept: &'a Trace,
    /// Every block kept without the outputs of norms and activations.
    pub cheap: &'a Trace,
    /// Every block recomputed, by itself.
    pub again: &'a Trace,
}

impl Chain {
    /// The chain of the last micro-step of the second update; each update has `window` of them. Blocks are what
    /// lies between memory probes, which `leanburn_levers::checkpoint::Chain` sets.
    ///
    /// `None` where the traces do not pass the same probes, forward and backward.
    pub fn of(traces: Traces, window: usize, runtime: Runtime, rates: Rates) -> Option<Self> {
        let index = (2 * window).checked_sub(1)?;
        let [kept, cheap, again] = [traces.kept, traces.cheap, traces.again]
            .map(|trace| Walk::of(trace, runtime, index, rates));
        let (kept, cheap, again) = (kept?, cheap?, again?);
        let n = kept.blocks();
        if n == 0 || cheap.blocks() != n || again.blocks() != n {
            return None;
        }
        let block = |index: usize| Block {
            input: match index {
                0 => 0,
                _ => again.grown(index - 1),
            },
            forward: kept.seconds(kept.forward_of(index)),
            alone: again.above(again.forward_of(index), again.forward[index]),
            behind: kept.behind(index),
            gradients: kept.behind(index).saturating_sub(kept.passing(index)),
            ways: match kept.grown(index) == cheap.grown(index) {
                // One without norms and activations.
                true => vec![kept.way(index, false, &kept)],
                false => vec![kept.way(index, false, &kept), cheap.way(index, true, &kept)],
            },
        };
        Some(Self {
            base: kept.live(kept.forward[0]),
            blocks: (0..n).map(block).collect(),
            output: again.grown(n - 1),
            head: kept.above(kept.forward[n]..kept.backward[n], kept.forward[n]),
            host: None,
        })
    }
}

/// Where one micro-step passes the probes, and what is alive there.
struct Walk<'a> {
    counter: Counter<'a>,
    replay: Replay,
    rates: Rates,
    points: Vec<Point>,
    /// Where the forward passes probe number `i`.
    forward: Vec<usize>,
    /// Where the backward comes back to it.
    backward: Vec<usize>,
}

impl<'a> Walk<'a> {
    fn of(trace: &'a Trace, runtime: Runtime, index: usize, rates: Rates) -> Option<Self> {
        let replay = Replay::of(trace, runtime);
        let starts = replay.marks.iter().enumerate();
        let mut starts = starts.filter(|(_, (_, mark))| *mark == Mark::Start);
        let (first, _) = starts.nth(index)?;
        let next = starts.next().map_or(replay.marks.len(), |(next, _)| next);
        let marks = &replay.marks[first..next];
        let at = |wanted: Mark| {
            let mut found = marks.iter().filter(|(_, mark)| *mark == wanted);
            found.next().map(|(at, _)| *at)
        };
        let end = at(Mark::BackwardEnd)?;
        let forward: Vec<usize> = (0..).map_while(|probe| at(Mark::Forward(probe))).collect();
        let backward = |probe| match probe {
            // Nothing in front of the first block wants a gradient.
            0 => Some(at(Mark::Backward(0)).unwrap_or(end)),
            _ => at(Mark::Backward(probe)),
        };
        let backward = (0..forward.len())
            .map(backward)
            .collect::<Option<Vec<_>>>()?;
        let passed = forward.iter().chain(backward.iter().rev());
        if !passed.is_sorted() {
            return None;
        }
        Some(Self {
            counter: Counter::new(trace),
            points: replay.records.get(index)?.points.clone(),
            replay,
            rates,
            forward,
            backward,
        })
    }

    fn blocks(&self) -> usize {
        self.forward.len().saturating_sub(1)
    }

    fn live(&self, at: usize) -> u64 {
        self.replay.moments[at].live
    }

    /// The most bytes during operations, above those alive at one.
    fn above(&self, range: Range<usize>, floor: usize) -> u64 {
        let moments = &self.replay.moments[range.start + 1..=range.end];
        let most = moments.iter().map(|moment| moment.peak).max();
        most.unwrap_or(0).saturating_sub(self.live(floor))
    }

    fn forward_of(&self, block: usize) -> Range<usize> {
        self.forward[block]..self.forward[block + 1]
    }

    fn backward_of(&self, block: usize) -> Range<usize> {
        self.backward[block + 1]..self.backward[block]
    }

    /// What a block's forward leaves behind.
    fn grown(&self, block: usize) -> u64 {
        let Range { start, end } = self.forward_of(block);
        self.live(end).saturating_sub(self.live(start))
    }

    /// What is there when the backward of a block begins, besides what it and the blocks before it keep.
    fn behind(&self, block: usize) -> u64 {
        let kept = self.live(self.forward[block + 1]);
        self.live(self.backward[block + 1]).saturating_sub(kept)
    }

    /// The gradient that arrives at a block.
    fn passing(&self, block: usize) -> u64 {
        let mut points = self.points.iter();
        let point = points.find(|point| point.mark == Mark::Backward(block + 1));
        point.map_or(0, |point| point.passing)
    }

    fn way(&self, block: usize, cheap: bool, kept: &Self) -> Way {
        let more = self.seconds(self.backward_of(block)) - kept.seconds(kept.backward_of(block));
        Way {
            cheap,
            kept: self.grown(block),
            forward: self.above(self.forward_of(block), self.forward[block]),
            backward: self.above(self.backward_of(block), self.forward[block]),
            extra: more.max(0.0),
        }
    }

    fn seconds(&self, range: Range<usize>) -> f64 {
        self.rates.seconds(&self.counter.work(range))
    }
}
