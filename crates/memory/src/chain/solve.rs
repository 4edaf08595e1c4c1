//! Dynamic programming: the least time for every range of blocks and every budget.

use super::{Chain, Cost, Piece, Schedule};

/// How many additions a table may take: less than a second of two cores.
const WORK: u64 = 1_000_000_000;
/// Budgets that are told apart at most; beyond this a finer table changes nothing that a trace would not.
const FINEST: u64 = 1 << 14;
/// Budgets that are told apart at least, where there is room.
const COARSEST: u64 = 1 << 7;
/// How many numbers the tables may hold: half a gibibyte of them.
const ROOM: u64 = 1 << 27;

/// Below so many numbers a thread is not worth its start.
const PARALLEL: usize = 1 << 14;

/// A schedule with what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to do.
    pub schedule: Schedule,
    /// What that takes.
    pub cost: Cost,
}

/// The best schedules of a chain for all budgets up to one.
pub struct Plans<'a> {
    chain: &'a Chain,
    /// Bytes of a slot.
    unit: u64,
    /// Bytes of the budget beyond its last whole slot: a table's entry `slots` is for `slots * unit + rest` bytes.
    rest: u64,
    /// Slots of the budget.
    slots: usize,
    /// Inputs of the blocks and of the head, in slots.
    inputs: Vec<usize>,
    /// What the blocks keep in each way, in slots: sums from the first block on, so that a run rounds once.
    kept: Vec<Vec<usize>>,
    /// Least extra seconds of blocks `start..end` within so many slots, input on the device.
    on_device: Table,
    /// The same with the input in host memory.
    on_host: Option<Table>,
}

/// Seconds by range of blocks and slots; a range may end [behind the head](Chain::after).
struct Table {
    /// Starts and ends that there are, less one.
    ends: usize,
    width: usize,
    seconds: Vec<f32>,
}

impl Table {
    fn new(blocks: usize, width: usize) -> Self {
        let ends = blocks + 1;
        Self {
            ends,
            width,
            seconds: vec![f32::INFINITY; (ends + 1) * (ends + 2) / 2 * width],
        }
    }

    /// Where the budgets of `start..end` begin: ranges are stored by their start, and then by length.
    fn at(&self, start: usize, end: usize) -> usize {
        let before = start * (2 * (self.ends + 1) - start + 1) / 2;
        (before + end - start) * self.width
    }

    fn of(&self, start: usize, end: usize) -> &[f32] {
        let at = self.at(start, end);
        &self.seconds[at..at + self.width]
    }

    fn set(&mut self, start: usize, end: usize, seconds: &[f32]) {
        let at = self.at(start, end);
        self.seconds[at..at + self.width].copy_from_slice(seconds);
    }
}

/// A first step with the blocks of `start..end`; what is left of the budget goes to the rest.
#[derive(Clone, Copy)]
enum First {
    /// The first block is kept in its way number so.
    Kept(usize),
    /// The blocks before this one are run again; whether the input of this one waits in host memory.
    Again(usize, bool),
}

/// One first step as arithmetic on two rows of the table: `seconds + rest[slots - less] + inside[slots - inside_less]`
/// from `from` slots on, where `inside` is what a segment takes when its turn comes again.
struct Move<'a> {
    first: First,
    seconds: f32,
    from: usize,
    rest: &'a [f32],
    less: usize,
    inside: Option<(&'a [f32], usize)>,
}

impl Move<'_> {
    fn seconds(&self, slots: usize) -> f32 {
        if slots < self.from {
            return f32::INFINITY;
        }
        let inside = self.inside.map_or(0.0, |(row, less)| row[slots - less]);
        self.seconds + self.rest[slots - self.less] + inside
    }

    fn improve(&self, best: &mut [f32]) {
        let from = self.from;
        if from >= best.len() {
            return;
        }
        let rest = &self.rest[from - self.less..];
        match self.inside {
            Some((row, less)) => {
                let terms = rest.iter().zip(&row[from - less..]);
                for (best, (rest, inside)) in best[from..].iter_mut().zip(terms) {
                    *best = best.min(self.seconds + rest + inside);
                }
            }
            None => {
                for (best, rest) in best[from..].iter_mut().zip(rest) {
                    *best = best.min(self.seconds + rest);
                }
            }
        }
    }
}

impl<'a> Plans<'a> {
    /// Plans a chain for every budget up to `budget` bytes.
    ///
    /// Exact for `budget` itself where it is at most some thousand times the greatest common divisor of what blocks keep, as
    /// for equal blocks; else sizes round to the nearest slot, some thousandth of the budget, and
    /// [`within`](Self::within) only gives schedules whose exact cost is within the budget.
    pub fn of(chain: &'a Chain, budget: u64) -> Self {
        let n = chain.blocks.len() as u64;
        let (tables, moves) = if chain.host.is_some() { (2, 3) } else { (1, 1) };
        let ranges = (n + 2).saturating_pow(2) / 2;
        let finest = (WORK / (moves * n.saturating_pow(3) / 6).max(1)).clamp(COARSEST, FINEST);
        let finest = finest.min(ROOM / (tables * ranges)).max(1);
        let unit = match greatest_common_divisor(chain) {
            0 => budget.max(1),
            divisor if budget / divisor <= finest => divisor,
            _ => budget.div_ceil(finest).max(1),
        };
        let slots = usize::try_from(budget / unit).unwrap_or(usize::MAX);
        let mut plans = Self {
            chain,
            unit,
            rest: budget % unit,
            slots,
            inputs: (0..=chain.blocks.len())
                .map(|block| chain.input(block))
                // Many that are less than half a slot are not nothing.
                .map(|bytes| nearest(bytes, unit).max(usize::from(bytes > 0)))
                .collect(),
            kept: kept(chain, unit),
            on_device: Table::new(chain.blocks.len(), slots + 1),
            on_host: chain
                .host
                .map(|_| Table::new(chain.blocks.len(), slots + 1)),
        };
        plans.fill();
        plans
    }

    /// The fastest schedule within `budget` bytes, or within those that were planned for, where these are less;
    /// `None` where there is none.
    pub fn within(&self, budget: u64) -> Option<Plan> {
        let most = usize::try_from(budget.saturating_sub(self.rest) / self.unit);
        let most = most.map_or(self.slots, |most| most.min(self.slots));
        // Where sizes were rounded, a little less of the table is a little less of the budget.
        let slack = (0..8).chain((3..).map_while(|shift| 1usize.checked_shl(shift)));
        let slots = slack.map_while(|slack| most.checked_sub(slack));
        let mut plans = slots.map_while(|slots| self.at(slots));
        plans.find(|plan| plan.cost.peak <= budget)
    }

    /// The frontier: every schedule that takes less time than all that need less memory, leanest first.
    pub fn frontier(&self) -> Vec<Plan> {
        let row = self.on_device.of(0, self.chain.blocks.len());
        let mut frontier: Vec<Plan> = Vec::new();
        for slots in 0..row.len() {
            let is_better = slots == 0 || row[slots] < row[slots - 1];
            let Some(plan) = is_better.then(|| self.at(slots)).flatten() else {
                continue;
            };
            let better = |last: &Plan| plan.cost.extra < last.cost.extra;
            if frontier.last().is_none_or(better) {
                frontier.retain(|other| other.cost.peak < plan.cost.peak);
                frontier.push(plan);
            }
        }
        frontier
    }

    fn at(&self, slots: usize) -> Option<Plan> {
        let mut schedule = Schedule::default();
        self.write(0, self.chain.blocks.len(), slots, false, &mut schedule)?;
        Some(Plan {
            cost: self.chain.cost(&schedule),
            schedule,
        })
    }

    /// Fills the tables, shorter ranges first.
    fn fill(&mut self) {
        let n = self.chain.blocks.len();
        // Where nothing is left to run, there may be the head.
        let mut best = vec![0f32; self.slots + 1];
        for end in 0..=n {
            self.on_device.set(end, self.chain.after(end), &best);
            self.on_device.set(end, end, &best);
        }
        let head = self.least(self.chain.head).min(best.len());
        best[..head].fill(f32::INFINITY);
        self.on_device.set(n, n, &best);
        for length in 1..=n {
            let last = n - length;
            self.fill_ranges(&[(last, self.chain.after(n))]);
            let ranges: Vec<_> = (0..=last).map(|start| (start, start + length)).collect();
            self.fill_ranges(&ranges);
        }
    }

    /// Fills ranges that do not depend on each other, on all cores.
    fn fill_ranges(&mut self, ranges: &[(usize, usize)]) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let each = match ranges.len() * self.slots > PARALLEL {
            true => ranges.len().div_ceil(cores),
            false => ranges.len(),
        };
        let plans = &*self;
        let rows = std::thread::scope(|scope| {
            let work = |ranges: &[(usize, usize)]| -> Vec<_> {
                ranges.iter().map(|range| plans.rows(*range)).collect()
            };
            let (here, there) = ranges.split_at(each);
            let there = there.chunks(each);
            let there: Vec<_> = there.map(|part| scope.spawn(move || work(part))).collect();
            let mut rows = work(here);
            for part in there {
                rows.extend(part.join().expect("adds and compares"));
            }
            rows
        });
        for ((start, end), (on_device, on_host)) in ranges.iter().zip(rows) {
            self.on_device.set(*start, *end, &on_device);
            if let (Some(table), Some(row)) = (&mut self.on_host, on_host) {
                table.set(*start, *end, &row);
            }
        }
    }

    /// The least seconds for every budget, with the input on the device and on the host.
    fn rows(&self, (start, end): (usize, usize)) -> (Vec<f32>, Option<Vec<f32>>) {
        let row = |parked| {
            let mut best = vec![f32::INFINITY; self.slots + 1];
            self.moves(start, end, parked, |step| step.improve(&mut best));
            best
        };
        (row(false), self.on_host.is_some().then(|| row(true)))
    }

    /// Every first step with the blocks of `start..end`, whose input waits in host memory or not.
    fn moves(&self, start: usize, end: usize, parked: bool, mut each: impl FnMut(Move)) {
        let (chain, n) = (self.chain, self.chain.blocks.len());
        let block = &chain.blocks[start];
        let behind = chain.behind(end);
        for (index, way) in block.ways.iter().enumerate().filter(|_| !parked) {
            let less = self.kept[index][start + 1] - self.kept[index][start];
            let most = way.forward.saturating_add(behind).max(way.backward);
            each(Move {
                first: First::Kept(index),
                seconds: way.extra as f32,
                from: self.least(most).max(less),
                rest: self.on_device.of(start + 1, end),
                less,
                inside: None,
            });
        }
        // What comes back from the host is there while the segment runs again.
        let (fetched, inside_less) = match parked {
            true => (block.input, self.inputs[start]),
            false => (0, 0),
        };
        let moved = chain.host.unwrap_or(0.0) * fetched as f64;
        let (mut alone, mut seconds) = (0, moved);
        // All of the range as one segment makes sense before the head only.
        let last = if end == n { n } else { end.min(n) - 1 };
        for middle in start + 1..=last {
            let input = if middle - 1 > start {
                chain.blocks[middle - 1].input
            } else {
                0
            };
            alone = alone.max(input.saturating_add(chain.blocks[middle - 1].alone));
            seconds += chain.blocks[middle - 1].forward;
            let most = fetched.saturating_add(alone).saturating_add(behind);
            let from = self.least(most).max(inside_less);
            let less = self.inputs[middle];
            let inside = Some((self.on_device.of(start, chain.after(middle)), inside_less));
            each(Move {
                first: First::Again(middle, false),
                seconds: seconds as f32,
                from: from.max(less),
                rest: self.on_device.of(middle, end),
                less,
                inside,
            });
            if let Some(on_host) = self.on_host.as_ref().filter(|_| middle < end) {
                each(Move {
                    first: First::Again(middle, true),
                    seconds: seconds as f32,
                    from,
                    rest: on_host.of(middle, end),
                    less: 0,
                    inside,
                });
            }
        }
    }

    /// Writes down the steps that the table found best.
    fn write(
        &self,
        mut start: usize,
        end: usize,
        mut slots: usize,
        mut parked: bool,
        schedule: &mut Schedule,
    ) -> Option<()> {
        while start < end.min(self.chain.blocks.len()) {
            let (mut best, mut fastest) = (None, f32::INFINITY);
            self.moves(start, end, parked, |step| {
                let seconds = step.seconds(slots);
                if seconds < fastest {
                    let inside_less = step.inside.map_or(0, |(_, less)| less);
                    (best, fastest) = (Some((step.first, step.less, inside_less)), seconds);
                }
            });
            let (first, less, inside_less) = best?;
            match first {
                First::Kept(way) => {
                    schedule.push(Piece::Kept {
                        blocks: 1,
                        cheap: self.chain.blocks[start].ways[way].cheap,
                    });
                    start += 1;
                    parked = false;
                }
                First::Again(middle, next_parked) => {
                    let mut pieces = Schedule::default();
                    let end = self.chain.after(middle);
                    self.write(start, end, slots - inside_less, false, &mut pieces)?;
                    schedule.push(Piece::Again { pieces, parked });
                    start = middle;
                    parked = next_parked;
                }
            }
            slots -= less;
        }
        Some(())
    }

    /// The fewest slots that stand for so many bytes.
    fn least(&self, bytes: u64) -> usize {
        let slots = bytes.saturating_sub(self.rest).div_ceil(self.unit);
        usize::try_from(slots).unwrap_or(usize::MAX)
    }
}

fn nearest(bytes: u64, unit: u64) -> usize {
    usize::try_from(bytes.saturating_add(unit / 2) / unit).unwrap_or(usize::MAX)
}

/// Prefix sums in slots of what each way keeps; a block without that way counts its first.
fn kept(chain: &Chain, unit: u64) -> Vec<Vec<usize>> {
    let ways = chain.blocks.iter().map(|block| block.ways.len());
    let of = |way: usize| {
        let mut sum = 0u64;
        let rest = chain.blocks.iter().map(move |block| {
            let way = block.ways.get(way).or(block.ways.first());
            sum = sum.saturating_add(way.map_or(0, |way| way.kept));
            nearest(sum, unit)
        });
        std::iter::once(0).chain(rest).collect()
    };
    (0..ways.max().unwrap_or(0)).map(of).collect()
}

fn greatest_common_divisor(chain: &Chain) -> u64 {
    let blocks = chain.blocks.iter();
    let kept = blocks
        .clone()
        .flat_map(|block| block.ways.iter().map(|way| way.kept));
    let inputs = blocks.map(|block| block.input);
    kept.chain(inputs).chain([chain.output]).fold(0, gcd)
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}
