use std::ops::Range;

use proptest::prelude::*;

use super::*;

/// All schedules of a range of blocks. `again` says whether the piece before it is recomputed, which is where an
/// input can wait in host memory; `inside` that the range is a segment, which is no segment of itself.
fn every(chain: &Chain, range: Range<usize>, again: bool, inside: bool) -> Vec<Vec<Piece>> {
    let Range { start, end } = range;
    if start == end {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    let mut with = |first: Piece, rest: &[Vec<Piece>]| {
        for rest in rest {
            all.push([std::slice::from_ref(&first), &rest[..]].concat());
        }
    };
    let rest = every(chain, start + 1..end, false, false);
    for way in &chain.blocks[start].ways {
        let cheap = way.cheap;
        with(Piece::Kept { blocks: 1, cheap }, &rest);
    }
    for middle in start + 1..=end - usize::from(inside) {
        let rest = every(chain, middle..end, true, false);
        for own in every(chain, start..middle, false, true) {
            for parked in [false, true] {
                if parked && (chain.host.is_none() || !again) {
                    continue;
                }
                let pieces = Schedule(own.clone());
                with(Piece::Again { pieces, parked }, &rest);
            }
        }
    }
    all
}

/// Runs a schedule allocation by allocation.
struct Device<'a> {
    chain: &'a Chain,
    live: u64,
    peak: u64,
    seconds: f64,
    moved: u64,
    /// The gradients that are there, counted as what is behind the last block that ran.
    gradients: u64,
}

impl Device<'_> {
    fn needs(&mut self, bytes: u64) {
        self.peak = self.peak.max(self.live + bytes);
    }

    fn run(&mut self, pieces: &[Piece], mut start: usize) {
        let mut undo: Vec<(usize, &Piece)> = Vec::new();
        let blocks = &self.chain.blocks;
        for (index, piece) in pieces.iter().enumerate() {
            undo.push((start, piece));
            let end = start + piece.blocks();
            match piece {
                Piece::Kept { cheap, .. } => {
                    for block in &blocks[start..end] {
                        let way = block.ways.iter().find(|w| w.cheap == *cheap).unwrap();
                        self.needs(way.forward + self.gradients);
                        self.live += way.kept;
                        self.seconds += way.extra;
                    }
                }
                Piece::Again { parked, .. } => {
                    let input = if *parked { blocks[start].input } else { 0 };
                    self.live += input;
                    for (n, block) in blocks[start..end].iter().enumerate() {
                        let own = if n == 0 { 0 } else { block.input };
                        self.needs(own + block.alone + self.gradients);
                        self.seconds += block.forward;
                    }
                    self.live -= input;
                    self.moved += input;
                    self.seconds += self.chain.host.unwrap_or(0.0) * input as f64;
                    let next = pieces.get(index + 1);
                    if !matches!(next, Some(Piece::Again { parked: true, .. })) {
                        self.live += blocks.get(end).map_or(self.chain.output, |b| b.input);
                    }
                }
            }
            start = end;
        }
        if start == blocks.len() {
            self.needs(self.chain.head);
        }
        for (index, (start, piece)) in undo.into_iter().enumerate().rev() {
            let end = start + piece.blocks();
            match piece {
                Piece::Kept { cheap, .. } => {
                    for block in blocks[start..end].iter().rev() {
                        let way = block.ways.iter().find(|w| w.cheap == *cheap).unwrap();
                        self.live -= way.kept;
                        self.needs(way.backward);
                    }
                }
                Piece::Again {
                    pieces: own,
                    parked,
                } => {
                    let next = pieces.get(index + 1);
                    if !matches!(next, Some(Piece::Again { parked: true, .. })) {
                        self.live -= blocks.get(end).map_or(self.chain.output, |b| b.input);
                    }
                    let input = if *parked { blocks[start].input } else { 0 };
                    self.live += input;
                    let before = self.gradients;
                    self.gradients = blocks[end - 1].behind;
                    self.run_inside(&own.0, start, end);
                    self.gradients = before;
                    self.live -= input;
                }
            }
        }
    }

    /// As [`Self::run`], but the head has had its turn unless the range ends with it.
    fn run_inside(&mut self, pieces: &[Piece], start: usize, end: usize) {
        if end == self.chain.blocks.len() {
            // A segment that ends at the head comes back after it; its own end is no second head.
            let headless = Chain {
                head: 0,
                ..self.chain.clone()
            };
            let mut inner = Device {
                chain: &headless,
                ..*self
            };
            inner.run(pieces, start);
            (self.live, self.peak) = (inner.live, inner.peak);
            (self.seconds, self.moved) = (inner.seconds, inner.moved);
        } else {
            self.run(pieces, start);
        }
    }
}

fn simulate(chain: &Chain, pieces: &[Piece]) -> Cost {
    let mut device = Device {
        chain,
        live: 0,
        peak: 0,
        seconds: 0.0,
        moved: 0,
        gradients: 0,
    };
    device.run(pieces, 0);
    assert_eq!(device.live, 0);
    Cost {
        peak: device.peak,
        extra: device.seconds,
        moved: device.moved,
    }
}

fn block() -> impl Strategy<Value = Block> {
    let way = (1u64..30, 0u64..20, 0u64..20, 0u32..4);
    (
        1u64..8,
        1u32..9,
        0u64..8,
        0u64..6,
        prop::collection::vec(way, 1..3),
    )
        .prop_map(|(input, forward, more, behind, ways)| Block {
            input,
            forward: forward.into(),
            alone: 8 + more,
            behind,
            gradients: 0,
            ways: ways
                .into_iter()
                .enumerate()
                .map(|(index, (kept, forward, backward, extra))| Way {
                    cheap: index > 0,
                    kept,
                    forward: kept + forward,
                    backward: kept + backward,
                    extra: if index > 0 { extra.into() } else { 0.0 },
                })
                .collect(),
        })
}

fn chain(longest: usize) -> impl Strategy<Value = Chain> {
    let host = prop::option::of(prop::sample::select(vec![0.25, 1.0]));
    (
        prop::collection::vec(block(), 1..=longest),
        1u64..8,
        0u64..30,
        host,
    )
        .prop_map(|(blocks, output, head, host)| Chain {
            base: 0,
            blocks,
            output,
            head,
            host,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The planner against every schedule there is.
    #[test]
    fn brute_force_agrees(chain in chain(4), budget in 10u64..150) {
        let all = every(&chain, 0..chain.blocks.len(), false, false);
        let costs = all.iter().map(|pieces| simulate(&chain, pieces));
        let best = costs
            .filter(|cost| cost.peak <= budget)
            .map(|cost| cost.extra)
            .min_by(f64::total_cmp);
        let plan = Plans::of(&chain, budget).within(budget);
        prop_assert_eq!(plan.as_ref().map(|plan| plan.cost.extra), best);
        if let Some(plan) = plan {
            prop_assert!(plan.cost.peak <= budget);
        }
    }

    /// [`Chain::cost`] is what an allocator would see.
    #[test]
    fn costs_are_those_of_a_run(chain in chain(3)) {
        for pieces in every(&chain, 0..chain.blocks.len(), false, false) {
            prop_assert_eq!(chain.cost(&Schedule(pieces.clone())), simulate(&chain, &pieces));
        }
    }

    /// Also where sizes have no divisor and the table is coarse.
    #[test]
    fn what_is_planned_is_within_the_budget(chain in chain(9), part in 0.2f64..1.0) {
        let mut chain = chain;
        for block in &mut chain.blocks {
            block.input = block.input * 1_000_003 + 7;
            block.alone *= 1_000_003;
            for way in &mut block.ways {
                way.kept = way.kept * 1_000_003 + 13;
                way.forward *= 1_000_003;
                way.backward *= 1_000_003;
            }
        }
        let budget = (chain.cost(&Schedule::default()).peak as f64 * part) as u64;
        if let Some(plan) = Plans::of(&chain, budget).within(budget) {
            prop_assert!(plan.cost.peak <= budget);
            prop_assert_eq!(plan.cost, chain.cost(&plan.schedule));
        }
    }

    #[test]
    fn the_frontier_falls(chain in chain(6)) {
        let most = chain.cost(&Schedule::default()).peak;
        let plans = Plans::of(&chain, most);
        let frontier = plans.frontier();
        for pair in frontier.windows(2) {
            prop_assert!(pair[0].cost.peak < pair[1].cost.peak);
            prop_assert!(pair[0].cost.extra > pair[1].cost.extra);
        }
        let last = frontier.last().expect("everything kept is one");
        prop_assert!(last.cost.peak <= most);
    }
}

/// A budget between two slots is all there for what is measured in bytes.
#[test]
fn no_byte_of_the_budget_is_lost() {
    let way = Way {
        cheap: false,
        kept: 6,
        forward: 6,
        backward: 6,
        extra: 0.0,
    };
    let chain = Chain {
        blocks: vec![Block {
            input: 2,
            forward: 1.0,
            alone: 8,
            ways: vec![way],
            ..Block::default()
        }],
        output: 2,
        head: 17,
        ..Chain::default()
    };
    let plan = |budget| Plans::of(&chain, budget).within(budget);
    assert_eq!(plan(23).map(|plan| plan.cost.extra), Some(0.0));
    assert_eq!(plan(22).map(|plan| plan.cost.extra), Some(1.0));
    assert_eq!(plan(18), None);
}

/// Time does not go beyond all bounds; what is found keeps to the budget.
#[test]
fn long_chains_are_planned_coarsely() {
    let block = |index: u64| Block {
        input: 1_000_003 + index,
        forward: 1.0,
        alone: 2_000_000,
        ways: vec![Way {
            kept: 9_000_001 + index,
            forward: 9_500_000,
            backward: 12_000_000,
            ..Way::default()
        }],
        ..Block::default()
    };
    let chain = Chain {
        blocks: (0..300).map(block).collect(),
        output: 1_000_003,
        ..Chain::default()
    };
    let budget = chain.cost(&Schedule::default()).peak / 2;
    let plan = Plans::of(&chain, budget).within(budget).unwrap();
    assert!(plan.cost.peak <= budget);
    assert!(plan.cost.extra < 300.0);
}

#[test]
fn gradients_of_parameters_can_be_left_out() {
    let way = Way {
        backward: 50,
        ..Way::default()
    };
    let block = Block {
        behind: 30,
        gradients: 20,
        ways: vec![way],
        ..Block::default()
    };
    let chain = Chain {
        blocks: vec![block],
        ..Chain::default()
    };
    let block = &chain.without_gradients().blocks[0];
    assert_eq!((block.gradients, block.behind), (0, 10));
    assert_eq!(block.ways[0].backward, 30);
}

/// The classic: of equal blocks, about a square root lives at once, at one more forward.
#[test]
fn equal_blocks_take_a_root_of_the_memory() {
    let n = 100;
    let block = Block {
        input: 1,
        forward: 1.0,
        alone: 1,
        behind: 0,
        gradients: 0,
        ways: vec![Way {
            cheap: false,
            kept: 1,
            forward: 1,
            backward: 2,
            extra: 0.0,
        }],
    };
    let chain = Chain {
        base: 0,
        blocks: vec![block; n],
        output: 1,
        head: 1,
        host: None,
    };
    let plans = Plans::of(&chain, 101);
    assert_eq!(plans.within(101).unwrap().cost.extra, 0.0);
    let plan = plans.within(22).unwrap();
    assert!(plan.cost.extra <= 100.0, "{:?}", plan.cost);
    // With more forwards it is logarithmic.
    assert!(plans.within(10).is_some());
    assert!(plans.within(1).is_none());
}
