//! What a step will need, in the rows of the ledger, before it runs.

mod rows;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::trace::{Buffer, Rates, Replay, Runtime, Trace, Work};
use crate::{Bytes, Known, Ledger, Mark, Measurement, Phase, Row};
use rows::Step;

/// How a prediction was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// From the operations of the step, recorded without running them.
    Trace,
    /// From two small steps that were run, extended to the batch.
    Measured,
    /// From closed formulas.
    Formula,
}

impl Method {
    /// The name in tables and in JSON: `trace`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Measured => "measured",
            Self::Formula => "formula",
        }
    }
}

/// How far off such predictions were where they were checked; `docs/accuracy.md` has the cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// Half of the peaks were nearer than this, a fraction.
    pub median: f64,
    /// All were.
    pub worst: f64,
}

/// A tensor that is alive at the peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Largest {
    /// What it is: the operation that made it, its shape and dtype.
    pub tensor: String,
    /// The layer that it was made in; empty before the first.
    pub layer: String,
    /// The row that it counts in.
    pub row: Row,
    /// Its size.
    pub bytes: Bytes,
}

/// What is alive while an operation runs: bytes by row, indexed by `row as usize`.
pub type Rows = [u64; Row::ALL.len()];

/// What one step is going to take.
#[derive(Clone, Debug)]
pub struct Prediction {
    /// The peak, row by row.
    pub rows: Ledger,
    /// The most bytes in use at once.
    pub peak: Bytes,
    /// Where in the step.
    pub phase: Phase,
    /// What stays in use after the forward.
    pub kept_after_forward: Option<Bytes>,
    /// Every operation of the step; empty where the method has none.
    pub timeline: Vec<Rows>,
    /// The operations of each phase.
    pub phases: Vec<(Phase, Range<usize>)>,
    /// Operations at which the forward passes a block.
    pub blocks: Vec<usize>,
    /// Why the backend cannot hold the step, however much memory there is: a tensor larger than a buffer may be.
    pub refused: Option<String>,
    /// The ten largest tensors at the peak.
    pub largest: Vec<Largest>,
    /// What every kernel of forward and backward of one micro-batch computes and moves, and those of an update;
    /// empty where the method does not count them.
    pub work: [Vec<Work>; 2],
    /// How it was made.
    pub method: Method,
    /// How far to trust it.
    pub confidence: Option<Confidence>,
}

impl Prediction {
    /// From a trace of three updates of `known.len() / 3` micro-batches each: the first makes the optimizer's
    /// state, the second is predicted, the third proves what lives on. `known` is of every micro-batch.
    ///
    /// `None` where the trace holds no whole update.
    pub fn of(trace: &Trace, known: &[Known], runtime: Runtime) -> Option<Self> {
        let replay = Replay::of(trace, runtime);
        let window = known.len() / 3;
        let peak = |index: &usize| {
            let points = replay.records.get(*index).map(|record| &record.points[..]);
            points
                .unwrap_or_default()
                .iter()
                .map(|point| point.peak)
                .max()
        };
        // The first of equals, as a real run keeps it.
        let index = (window..2 * window).rev().max_by_key(peak)?;
        let record = replay.records.get(index)?;
        let mut measured = record.measurement(&known[index], Bytes(0))?;
        let refused = match beyond(measured.peak, &replay, runtime) {
            Ok(beyond) => {
                measured.rows.set(Row::Allocator, beyond);
                None
            }
            Err(refusal) => Some(refusal),
        };
        let step = Step::of(&replay, index)?;
        Some(Self {
            largest: step.largest(trace, &replay, runtime),
            timeline: step.timeline(&replay),
            phases: step.phases(),
            blocks: step.blocks.clone(),
            work: Step::of(&replay, 2 * window - 1)?.work(trace),
            method: Method::Trace,
            confidence: match runtime {
                Runtime::Flex => Some(FLEX),
                Runtime::Wgpu => Some(WGPU),
                Runtime::Native | Runtime::Cuda => None,
            },
            refused,
            ..Self::from(measured)
        })
    }

    /// Bytes that the device must have: the peak, and what the allocator takes beyond it, where that is known.
    pub fn needed(&self) -> Bytes {
        let allocator = self.rows.get(Row::Allocator).unwrap_or_default();
        Bytes(self.peak.0.saturating_add(allocator.0))
    }

    /// Floating-point operations of the step's products and convolutions, where the method counts them.
    pub fn arithmetic(&self) -> Option<u64> {
        let [micro_step, update] = &self.work;
        let kernels = micro_step.iter().chain(update).map(Work::arithmetic);
        (!micro_step.is_empty()).then(|| kernels.fold(0, u64::saturating_add))
    }

    /// Seconds that an update of so many micro-batches takes at best, where the method counts them.
    pub fn seconds(&self, rates: Rates, accumulate: usize) -> Option<f64> {
        let [micro_step, update] = &self.work;
        let each = rates.seconds(micro_step);
        (!micro_step.is_empty()).then(|| accumulate as f64 * each + rates.seconds(update))
    }

    /// The part that a measurement has too.
    pub fn step(&self) -> Measurement {
        Measurement {
            phase: self.phase,
            peak: self.peak,
            kept_after_forward: self.kept_after_forward,
            rows: self.rows.clone(),
        }
    }

    /// The first sentence of a report: how it was made and how far to trust it.
    pub fn remark(&self) -> String {
        let how = match self.method {
            Method::Trace => "predicted from a trace of the step",
            Method::Measured => "predicted from two small steps",
            Method::Formula => "predicted by closed formulas",
        };
        match self.confidence {
            Some(Confidence { median, worst }) => format!(
                "{how}; such peaks were off by {:.1} % in the median and {:.1} % at worst (docs/accuracy.md)",
                100.0 * median,
                100.0 * worst,
            ),
            None if self.method == Method::Trace => {
                format!("{how}; not yet checked against a device of this kind (docs/accuracy.md)")
            }
            None => how.into(),
        }
    }
}

/// What the pool reserves beyond the peak, or why it cannot hold the step.
#[cfg(feature = "pool")]
fn beyond(peak: Bytes, replay: &Replay, runtime: Runtime) -> Result<Option<Bytes>, String> {
    let reserved = crate::trace::reserved::reserved(replay, runtime);
    let reserved = reserved.map_err(|refusal| refusal.to_string())?;
    Ok(reserved.map(|reserved| Bytes(reserved.0.saturating_sub(peak.0))))
}

#[cfg(not(feature = "pool"))]
fn beyond(_: Bytes, _: &Replay, _: Runtime) -> Result<Option<Bytes>, String> {
    Ok(None)
}

/// `cargo run --release --example accuracy_matrix`
const FLEX: Confidence = Confidence {
    median: 0.0027,
    worst: 0.0165,
};
/// `cargo run --release --example accuracy_matrix -- --backend wgpu --models gpt-tiny`
const WGPU: Confidence = Confidence {
    median: 0.0002,
    worst: 0.001,
};

impl From<Measurement> for Prediction {
    /// With nothing but the rows.
    fn from(step: Measurement) -> Self {
        Self {
            rows: step.rows,
            peak: step.peak,
            phase: step.phase,
            kept_after_forward: step.kept_after_forward,
            timeline: Vec::new(),
            phases: Vec::new(),
            blocks: Vec::new(),
            refused: None,
            largest: Vec::new(),
            work: Default::default(),
            method: Method::Formula,
            confidence: None,
        }
    }
}
