//! What one training step holds at each point, and which rows of the ledger that is.
//!
//! Probes between the blocks of a model call [`mark`] in the forward and again in the backward.
//! While no step is being recorded a mark costs one relaxed load and a look at the thread.

mod trail;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Bytes, Ledger, Measurement, Meter, Phase, Row, trace};

pub use trail::{follow, is_followed};

static RECORDING: AtomicBool = AtomicBool::new(false);
static UNDER_WAY: Mutex<Option<(Meter, Record)>> = Mutex::new(None);

/// A point in a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Model, optimizer and batch are there, nothing of the step is.
    Start,
    /// The forward has passed probe number `n`.
    Forward(usize),
    /// The loss is there.
    ForwardEnd,
    /// The backward has come back to probe number `n`.
    Backward(usize),
    /// All gradients are there.
    BackwardEnd,
    /// The optimizer is done.
    UpdateEnd,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Forward(n) => write!(f, "forward {n}"),
            Self::ForwardEnd => f.write_str("forward end"),
            Self::Backward(n) => write!(f, "backward {n}"),
            Self::BackwardEnd => f.write_str("backward end"),
            Self::UpdateEnd => f.write_str("update end"),
        }
    }
}

/// What was alive at a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Where in the step.
    pub mark: Mark,
    /// Bytes alive.
    pub live: u64,
    /// Highest between the previous point and this one.
    pub peak: u64,
    /// Size of the gradient passing through a probe at this moment.
    pub passing: u64,
}

/// What is known about a step without measuring it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Trainable parameters as stored.
    pub parameters: Bytes,
    /// Running statistics and other state that is not trained.
    pub buffers: Bytes,
    /// The batch on the device.
    pub inputs: Bytes,
    /// Optimizer state.
    pub optimizer_state: Bytes,
    /// Gradients of earlier micro-batches, alive before this step began.
    pub accumulated: Bytes,
    /// All gradients of the model together.
    pub gradients: Bytes,
}

/// The points of one step, recorded or predicted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// In the order of the step.
    pub points: Vec<Point>,
    /// The allocator's own share, where it is known.
    pub allocator: Option<Bytes>,
}

/// Begins to record a step; one at a time in a process, a second replaces the first.
pub fn start(meter: Meter) {
    meter.sync();
    let record = Record {
        points: Vec::with_capacity(64),
        allocator: None,
    };
    *under_way() = Some((meter, record));
    RECORDING.store(true, Ordering::Relaxed);
    mark(Mark::Start, Bytes(0));
}

fn under_way() -> MutexGuard<'static, Option<(Meter, Record)>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a step is being recorded, or traced on this thread.
pub fn is_recording() -> bool {
    RECORDING.load(Ordering::Relaxed) || trace::is_tracing()
}

/// Notes a point, if a step is being recorded or traced.
pub fn mark(mark: Mark, passing: Bytes) {
    if trace::is_tracing() {
        return trace::note(trace::Note::Mark(mark, passing));
    }
    if !is_recording() {
        return;
    }
    if let Some((meter, record)) = under_way().as_mut() {
        meter.sample();
        let (Some(live), Some(peak)) = (meter.current(), meter.peak()) else {
            return;
        };
        record.points.push(Point {
            mark,
            live: live.0,
            peak: peak.0.max(live.0),
            passing: passing.0,
        });
        trail::note(mark, live);
        meter.reset_peak();
    }
}

/// Ends the recording; `None` if there was none or the meter cannot know.
pub fn finish() -> Option<Record> {
    RECORDING.store(false, Ordering::Relaxed);
    let (meter, mut record) = under_way().take()?;
    record.allocator = meter.allocator_overhead();
    (record.points.len() > 1).then_some(record)
}

impl Record {
    fn live_at(&self, mark: Mark) -> Option<u64> {
        self.points
            .iter()
            .find(|point| point.mark == mark)
            .map(|point| point.live)
    }

    /// Bytes kept for the backward: live after the forward less live before it.
    pub fn kept_after_forward(&self) -> Option<Bytes> {
        let kept = self
            .live_at(Mark::ForwardEnd)?
            .saturating_sub(self.live_at(Mark::Start)?);
        Some(Bytes(kept))
    }

    /// The rows at the highest point.
    ///
    /// Activations and gradients are those at the last mark before the peak; what was allocated
    /// since counts as temporaries, like everything that no other row explains. `origin` is what
    /// lived in this allocator before the model did; it is no part of the step.
    pub fn measurement(&self, known: &Known, origin: Bytes) -> Option<Measurement> {
        let index = (1..self.points.len()).max_by_key(|index| self.points[*index].peak)?;
        self.measurement_at(index, known, origin)
    }

    /// The most that activations and temporaries take together in forward and backward, which may be at another
    /// moment than the peak: gradients grow as activations go.
    pub fn step_peak(&self, known: &Known, origin: Bytes) -> Option<Bytes> {
        let indices = 1..self.points.len();
        let indices = indices.filter(|index| self.points[*index].mark != Mark::UpdateEnd);
        let rows = indices.map(|index| Some(self.measurement_at(index, known, origin)?.rows));
        let step = rows.map(|rows| {
            let of = |row| rows.as_ref()?.get(row);
            Some(of(Row::Activations)?.0 + of(Row::Temporaries)?.0)
        });
        step.max().flatten().map(Bytes)
    }

    /// The rows at the highest moment between point `index` and the one before it.
    fn measurement_at(&self, index: usize, known: &Known, origin: Bytes) -> Option<Measurement> {
        let start = self.live_at(Mark::Start)?;
        let (before, at) = (self.points[index - 1], self.points[index]);
        let phase = match at.mark {
            Mark::Start | Mark::Forward(_) | Mark::ForwardEnd => Phase::Forward,
            Mark::Backward(_) | Mark::BackwardEnd => Phase::Backward,
            Mark::UpdateEnd => Phase::Update,
        };
        let held = before.live.saturating_sub(start);
        let (activations, gradients) = match (phase, before.mark) {
            (Phase::Forward, _) | (_, Mark::ForwardEnd) => (held, 0),
            (Phase::Update, _) => (0, known.gradients.0.saturating_sub(known.accumulated.0)),
            (_, Mark::Backward(n)) => {
                let activations = self
                    .live_at(Mark::Forward(n))
                    .unwrap_or(start)
                    .saturating_sub(start);
                let activations = activations.min(held);
                (
                    activations,
                    (held - activations).saturating_sub(before.passing),
                )
            }
            (_, _) => (0, held),
        };
        let peak = at.peak.saturating_sub(origin.0);
        let rows = [
            (Row::Parameters, known.parameters.0),
            (Row::Buffers, known.buffers.0),
            (Row::Inputs, known.inputs.0),
            (Row::Activations, activations),
            (Row::Gradients, gradients + known.accumulated.0),
            (Row::OptimizerState, known.optimizer_state.0),
        ];
        let explained: u64 = rows.iter().map(|(_, bytes)| bytes).sum();
        let mut ledger = Ledger::default();
        for (row, bytes) in rows {
            ledger.set(row, Some(Bytes(bytes)));
        }
        ledger.set(
            Row::Temporaries,
            Some(Bytes(peak.saturating_sub(explained))),
        );
        ledger.set(Row::Allocator, self.allocator);
        Some(Measurement {
            phase,
            peak: Bytes(peak),
            kept_after_forward: self.kept_after_forward(),
            rows: ledger,
        })
    }
}
