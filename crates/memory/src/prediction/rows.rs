//! Which row each buffer of a replayed step counts in.

use std::ops::Range;

use super::{Buffer, Bytes, Largest, Mark, Phase, Replay, Row, Rows, Runtime, Trace};
use crate::trace::{Counter, Work};

/// How many tensors a report names.
const NAMED: usize = 10;

/// Where one micro-step stands in its trace.
pub struct Step {
    /// The end of the last update: what is older and not stored is the optimizer's.
    window: usize,
    /// The last mark before the step, behind which the batch is made: what is older is of earlier micro-batches.
    before: usize,
    start: usize,
    forward_end: usize,
    backward_end: usize,
    end: usize,
    /// Operations of the step at which the forward passes a block.
    pub blocks: Vec<usize>,
}

impl Step {
    /// The step that record number `index` is of.
    pub fn of(replay: &Replay, index: usize) -> Option<Self> {
        let marks = &replay.marks;
        let starts = marks
            .iter()
            .enumerate()
            .filter(|(_, (_, mark))| *mark == Mark::Start);
        let (first, (start, _)) = starts.clone().nth(index)?;
        let next = starts
            .clone()
            .nth(index + 1)
            .map_or(marks.len(), |(next, _)| next);
        let own = &marks[first..next];
        let at = |wanted: Mark| {
            own.iter()
                .find(|(_, mark)| *mark == wanted)
                .map(|(at, _)| *at)
        };
        let backward_end = at(Mark::BackwardEnd)?;
        // Probe 0 stands before the first block.
        let blocks = own
            .iter()
            .filter(|(_, mark)| matches!(mark, Mark::Forward(1..)));
        Some(Self {
            window: marks[..first]
                .iter()
                .rfind(|(_, mark)| *mark == Mark::UpdateEnd)
                .map_or(0, |(at, _)| *at),
            before: first.checked_sub(1).map_or(0, |last| marks[last].0),
            start: *start,
            forward_end: at(Mark::ForwardEnd)?,
            backward_end,
            end: at(Mark::UpdateEnd).unwrap_or(backward_end),
            blocks: blocks.map(|(at, _)| at - start).collect(),
        })
    }

    /// What forward and backward do, and then what the update does, where it is this step's.
    pub fn work(&self, trace: &Trace) -> [Vec<Work>; 2] {
        let ranges = [self.start..self.backward_end, self.backward_end..self.end];
        let counter = Counter::new(trace);
        ranges.map(|range| counter.work(range))
    }

    /// The operations of each phase, counted from the step's first.
    pub fn phases(&self) -> Vec<(Phase, Range<usize>)> {
        let at = |operation: usize| operation - self.start;
        let mut phases = vec![
            (Phase::Forward, 0..at(self.forward_end)),
            (Phase::Backward, at(self.forward_end)..at(self.backward_end)),
        ];
        if self.end > self.backward_end {
            phases.push((Phase::Update, at(self.backward_end)..at(self.end)));
        }
        phases
    }

    /// Where a buffer came from, and how long it lived, say what it is.
    fn row(&self, buffer: &Buffer) -> Row {
        let (born, end) = (buffer.span.start, buffer.span.end);
        match &buffer.stored {
            Some((row, _)) => *row,
            None if born < self.window => Row::OptimizerState,
            None if born < self.before => Row::Gradients,
            None if born < self.start => Row::Inputs,
            None if born < self.forward_end && end > self.forward_end + 1 => Row::Activations,
            None if (self.forward_end..self.backward_end).contains(&born)
                && end > self.backward_end =>
            {
                Row::Gradients
            }
            // State that was made anew instead of in place.
            None if born >= self.backward_end && end > self.end + 1 => Row::OptimizerState,
            None => Row::Temporaries,
        }
    }

    fn alive<'a>(&self, replay: &'a Replay) -> impl Iterator<Item = &'a Buffer> {
        let range = self.start..self.end;
        let alive =
            move |buffer: &&Buffer| buffer.span.start < range.end && buffer.span.end > range.start;
        replay.buffers.iter().filter(alive)
    }

    /// Bytes by row during each operation.
    pub fn timeline(&self, replay: &Replay) -> Vec<Rows> {
        let operations = self.end - self.start;
        let mut changes = vec![[0i128; Row::ALL.len()]; operations + 1];
        for buffer in self.alive(replay) {
            let row = self.row(buffer) as usize;
            let first = buffer.span.start.max(self.start) - self.start;
            let last = buffer.span.end.min(self.end) - self.start;
            changes[first][row] += i128::from(buffer.bytes);
            changes[last][row] -= i128::from(buffer.bytes);
        }
        let mut now = [0i128; Row::ALL.len()];
        let moments = &replay.moments[self.start..self.end];
        let operation = |(changes, moment): (&[i128; Row::ALL.len()], &crate::trace::Moment)| {
            for (now, change) in now.iter_mut().zip(changes) {
                *now += change;
            }
            let mut rows = now.map(|bytes| u64::try_from(bytes).unwrap_or(0));
            // Workspaces, and what autodiff holds.
            let more = moment.peak.saturating_sub(rows.iter().sum());
            rows[Row::Temporaries as usize] += more;
            rows
        };
        changes.iter().zip(moments).map(operation).collect()
    }

    /// The largest buffers at the peak: of all operations, or of the marks where a pool is looked at.
    pub fn largest(&self, trace: &Trace, replay: &Replay, runtime: Runtime) -> Vec<Largest> {
        let step = self.start..self.end;
        let highest = match runtime.has_pool() {
            false => step.max_by_key(|at| replay.moments[*at].peak),
            true => {
                let marks = replay.marks.iter().map(|(at, _)| *at);
                let marks = marks.filter(|at| step.contains(at));
                marks.max_by_key(|at| replay.moments[*at].live)
            }
        };
        let Some(highest) = highest else {
            return Vec::new();
        };
        let mut buffers: Vec<&Buffer> = self
            .alive(replay)
            .filter(|buffer| buffer.span.contains(&highest))
            .collect();
        buffers.sort_by_key(|buffer| (std::cmp::Reverse(buffer.bytes), buffer.span.start));
        let named = buffers.into_iter().take(NAMED);
        named
            .map(|buffer| self.name(trace, buffer, highest))
            .collect()
    }

    /// A buffer with what it holds at `at`.
    fn name(&self, trace: &Trace, buffer: &Buffer, at: usize) -> Largest {
        let held = buffer.held.iter().rfind(|(made, _)| *made <= at);
        let (made, tensor) = held.unwrap_or(&buffer.held[0]);
        let shape: Vec<String> = tensor.shape.iter().map(usize::to_string).collect();
        let (what, layer) = match &buffer.stored {
            Some((_, path)) => {
                let (layer, name) = path.rsplit_once('.').unwrap_or(("", path));
                (name.to_owned(), layer.to_owned())
            }
            // Named by what it is for: its memory may have been a gradient's.
            None if self.row(buffer) == Row::OptimizerState => {
                ("moment".into(), buffer.layer.clone())
            }
            None => (Replay::name(trace, *made), buffer.layer.clone()),
        };
        let dtype = format!("{:?}", tensor.dtype).to_lowercase();
        Largest {
            tensor: format!("{what} [{}] {dtype}", shape.join(", ")),
            layer,
            row: self.row(buffer),
            bytes: Bytes(buffer.bytes),
        }
    }
}
