//! Running a trace by a backend's rules: which buffers are alive after each operation.

mod buffers;
mod kernel;
#[cfg(test)]
mod tests;

pub(super) use kernel::kernel_end;

use std::collections::HashMap;
use std::ops::Range;

use super::gemm;
use super::layout::Layout;
use super::operation::name;
use super::{Note, Operation, Runtime, Trace, Use};
use crate::record::{Point, Record};
use crate::{Mark, Row};

/// What an operation does with memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its output is the first input, seen otherwise.
    View(Layout),
    /// Its outputs are new.
    Made {
        /// Inputs whose memory the first output takes over where nobody else holds it.
        into: Vec<usize>,
        /// Bytes that it needs while it runs.
        workspace: u64,
    },
    /// The same, and the thread that trains keeps a buffer from then on.
    Buffered(Box<Effect>),
}

impl Effect {
    pub fn made() -> Self {
        Self::Made {
            into: Vec::new(),
            workspace: 0,
        }
    }

    pub fn in_place(inputs: usize) -> Self {
        Self::Made {
            into: (0..inputs).collect(),
            workspace: 0,
        }
    }
}

/// A piece of memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Its size.
    pub bytes: u64,
    /// The operations during which it was alive.
    pub span: Range<usize>,
    /// The tensors that it held one after another, with the operations that made them.
    pub held: Vec<(usize, Use)>,
    /// Where the model stores it, if it does.
    pub stored: Option<(Row, String)>,
    /// The layer that it was made in: the last one on its way whose parameters were read.
    pub layer: String,
    /// Whether it was made of stored tensors only, such as a weight in another dtype.
    of_stored: bool,
    views: usize,
}

/// What is alive around one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The most while it runs.
    pub peak: u64,
    /// After it.
    pub live: u64,
}

/// A trace with its memory.
#[derive(Debug, Default)]
pub struct Replay {
    /// One for each operation of the trace.
    pub moments: Vec<Moment>,
    /// Every buffer that ever was.
    pub buffers: Vec<Buffer>,
    /// What the marks saw, one record for each [`Mark::Start`].
    pub records: Vec<Record>,
    /// Where the marks stand in the trace.
    pub marks: Vec<(usize, Mark)>,
}

impl Replay {
    /// Replays a trace as it would run there.
    pub fn of(trace: &Trace, runtime: Runtime) -> Self {
        let mut state = State {
            trace,
            runtime,
            last_use: last_uses(trace),
            views: HashMap::new(),
            replay: Replay::default(),
            live: runtime.besides(trace),
            highest: 0,
            since_mark: 0,
            graph: 0,
            in_forward: false,
            own_buffer: match runtime.has_pool() {
                true => 0,
                false => gemm::buffer(),
            },
        };
        let mut at = 0;
        while at < trace.operations.len() {
            let end = state.step(at);
            let moment = Moment {
                peak: state.highest.max(state.live),
                live: state.live,
            };
            state.since_mark = state.since_mark.max(moment.peak);
            state.highest = state.live;
            state.replay.moments.resize(end, moment);
            at = end;
        }
        for buffer in &mut state.replay.buffers {
            buffer.span.end = buffer.span.end.min(trace.operations.len());
        }
        state.replay
    }

    /// What the operation at `at` is called, such as `convolution` or `matmul`.
    pub fn name(trace: &Trace, at: usize) -> String {
        match &trace.operations[at] {
            Operation::Note(Note::KernelBegin(kernel)) => kernel.name.into(),
            Operation::Note(_) => String::new(),
            Operation::Run { ir, .. } => name(ir),
        }
    }
}

/// The last operation that touches each tensor.
pub(super) fn last_uses(trace: &Trace) -> HashMap<u64, usize> {
    let mut last = HashMap::new();
    for (at, operation) in trace.operations.iter().enumerate() {
        if let Operation::Run {
            inputs, outputs, ..
        } = operation
        {
            for tensor in inputs.iter().chain(outputs) {
                last.insert(tensor.id, at);
            }
        }
    }
    last
}

struct View {
    buffer: usize,
    layout: Layout,
}

struct State<'a> {
    trace: &'a Trace,
    runtime: Runtime,
    last_use: HashMap<u64, usize>,
    views: HashMap<u64, View>,
    replay: Replay,
    live: u64,
    /// Of the operation that runs.
    highest: u64,
    since_mark: u64,
    /// Bytes of autodiff's graph.
    graph: u64,
    in_forward: bool,
    /// What the thread that trains will keep at its first product.
    own_buffer: u64,
}

impl State<'_> {
    /// Runs what stands at `at`; returns where the next stands.
    fn step(&mut self, at: usize) -> usize {
        let trace = self.trace;
        match &trace.operations[at] {
            Operation::Note(Note::KernelBegin(kernel)) if !self.runtime.has_pool() => {
                let end = kernel::kernel_end(trace, at);
                self.grow_graph();
                self.fused(*kernel, at..end);
                end
            }
            Operation::Note(note) => {
                self.note(at, note);
                at + 1
            }
            Operation::Run {
                ir,
                inputs,
                outputs,
            } => {
                let layouts: Vec<Layout> = inputs.iter().map(|x| self.layout(x)).collect();
                let shape = outputs.first().map_or(&[][..], |output| &output.shape);
                let effect = self.runtime.effect(ir, inputs, &layouts, shape);
                self.grow_graph();
                self.run(at, inputs, outputs, effect);
                at + 1
            }
        }
    }

    fn grow_graph(&mut self) {
        if self.in_forward {
            self.graph += self.runtime.graph();
            self.live += self.runtime.graph();
        }
    }

    fn note(&mut self, at: usize, note: &Note) {
        match note {
            Note::Stored { id, path, row } => {
                if let Some(view) = self.views.get(id) {
                    self.replay.buffers[view.buffer].stored = Some((*row, path.clone()));
                }
            }
            Note::Mark(mark, passing) => self.mark(at, *mark, passing.0),
            Note::KernelBegin(_) | Note::KernelEnd => {}
        }
    }

    fn mark(&mut self, at: usize, mark: Mark, passing: u64) {
        match mark {
            Mark::Start => {
                self.replay.records.push(Record::default());
                self.since_mark = self.live;
                self.in_forward = true;
            }
            Mark::ForwardEnd => self.in_forward = false,
            Mark::BackwardEnd => self.live -= std::mem::take(&mut self.graph),
            _ => {}
        }
        self.replay.marks.push((at, mark));
        if let Some(record) = self.replay.records.last_mut() {
            let peak = match self.runtime.has_pool() {
                true => self.live,
                false => self.since_mark.max(self.live),
            };
            record.points.push(Point {
                mark,
                live: self.live,
                peak,
                passing,
            });
        }
        self.since_mark = self.live;
        self.highest = self.live;
    }
}
