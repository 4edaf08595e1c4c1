//! Running a trace by a backend's rules: which buffers are alive after each operation.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::gemm;
use super::layout::Layout;
use super::operation::name;
use super::{Kernel, Note, Operation, Runtime, Trace, Use, flex};
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
    /// The tensor that it holds, or held last.
    pub tensor: Use,
    /// The operation that made that.
    made_at: usize,
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

    /// What made a buffer, such as `convolution` or `matmul`.
    pub fn maker(trace: &Trace, buffer: &Buffer) -> String {
        match &trace.operations[buffer.made_at] {
            Operation::Note(Note::KernelBegin(kernel)) => kernel.name.into(),
            Operation::Note(_) => String::new(),
            Operation::Run { ir, .. } => name(ir),
        }
    }
}

/// The last operation that touches each tensor.
fn last_uses(trace: &Trace) -> HashMap<u64, usize> {
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

/// One behind the end of the kernel that begins here.
fn kernel_end(trace: &Trace, begin: usize) -> usize {
    let mut depth = 0;
    for (at, operation) in trace.operations.iter().enumerate().skip(begin) {
        match operation {
            Operation::Note(Note::KernelBegin(_)) => depth += 1,
            Operation::Note(Note::KernelEnd) => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    trace.operations.len()
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

impl<'a> State<'a> {
    /// Runs what stands at `at`; returns where the next stands.
    fn step(&mut self, at: usize) -> usize {
        let trace = self.trace;
        match &trace.operations[at] {
            Operation::Note(Note::KernelBegin(kernel)) if !self.runtime.has_pool() => {
                let end = kernel_end(trace, at);
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

    fn layout(&self, tensor: &Use) -> Layout {
        match self.views.get(&tensor.id) {
            Some(view) => view.layout.clone(),
            None => Layout::contiguous(&tensor.shape),
        }
    }

    /// Tensors that come from outside of the trace exist from their first use on.
    fn ensure(&mut self, at: usize, tensor: &Use) {
        if !self.views.contains_key(&tensor.id) {
            self.make(
                at,
                tensor,
                Layout::contiguous(&tensor.shape),
                &Layer::default(),
            );
        }
    }

    fn make(&mut self, at: usize, tensor: &Use, layout: Layout, layer: &Layer) {
        let buffer = self.replay.buffers.len();
        let bytes = self.runtime.size(tensor);
        self.replay.buffers.push(Buffer {
            bytes,
            span: at..usize::MAX,
            tensor: tensor.clone(),
            made_at: at,
            stored: None,
            layer: layer.name.clone(),
            of_stored: layer.of_stored,
            views: 1,
        });
        self.live += bytes;
        self.views.insert(tensor.id, View { buffer, layout });
    }

    fn share(&mut self, tensor: &Use, buffer: usize, layout: Layout) {
        self.replay.buffers[buffer].views += 1;
        self.views.insert(tensor.id, View { buffer, layout });
    }

    /// Writes `tensor` where another was.
    fn take_over(&mut self, at: usize, tensor: &Use, buffer: usize, layout: Layout) {
        self.share(tensor, buffer, layout);
        let buffer = &mut self.replay.buffers[buffer];
        (buffer.tensor, buffer.made_at) = (tensor.clone(), at);
    }

    fn drop(&mut self, at: usize, id: u64) {
        let Some(view) = self.views.remove(&id) else {
            return;
        };
        let buffer = &mut self.replay.buffers[view.buffer];
        buffer.views -= 1;
        if buffer.views == 0 {
            self.live -= buffer.bytes;
            buffer.span.end = at + 1;
        }
    }

    fn ends(&self, tensor: &Use, at: usize) -> bool {
        tensor.last || self.last_use[&tensor.id] <= at
    }

    fn buffer_of(&self, tensor: &Use) -> usize {
        self.views[&tensor.id].buffer
    }

    /// Whether an output of this size may take over the memory of `input`.
    fn is_free(&self, input: &Use, output: &Use) -> bool {
        let view = &self.views[&input.id];
        let buffer = &self.replay.buffers[view.buffer];
        buffer.views == 1 && view.layout.is_dense() && buffer.tensor.bytes == output.bytes
    }

    /// The layer whose parameters are read, else the one that the first input comes from.
    fn layer(&self, inputs: &[&Use]) -> Layer {
        let views = inputs.iter().filter_map(|input| self.views.get(&input.id));
        let buffers: Vec<&Buffer> = views
            .map(|view| &self.replay.buffers[view.buffer])
            .collect();
        let is_stored = |buffer: &&&Buffer| buffer.stored.is_some() || buffer.of_stored;
        let is_named = |buffer: &&&Buffer| !buffer.layer.is_empty();
        let from = buffers
            .iter()
            .find(is_stored)
            .or_else(|| buffers.iter().find(is_named));
        let name = from.map_or(String::new(), |buffer| match &buffer.stored {
            Some((_, path)) => path.rsplit_once('.').map_or("", |(layer, _)| layer).into(),
            None => buffer.layer.clone(),
        });
        Layer {
            name,
            of_stored: !buffers.is_empty() && buffers.iter().all(|buffer| is_stored(&buffer)),
        }
    }

    fn run(&mut self, at: usize, inputs: &[Use], outputs: &[Use], effect: Effect) {
        for input in inputs {
            self.ensure(at, input);
        }
        match effect {
            Effect::View(layout) => {
                let buffer = self.buffer_of(&inputs[0]);
                for output in outputs {
                    self.share(output, buffer, layout.clone());
                }
            }
            Effect::Buffered(product) => {
                self.live += std::mem::take(&mut self.own_buffer);
                return self.run(at, inputs, outputs, *product);
            }
            Effect::Made { into, workspace } => {
                let layer = self.layer(&inputs.iter().collect::<Vec<_>>());
                for (index, output) in outputs.iter().enumerate() {
                    let layout = Layout::contiguous(&output.shape);
                    let candidates = into.iter().filter_map(|&input| inputs.get(input));
                    let free = candidates
                        .filter(|input| index == 0 && input.last)
                        .find(|input| self.is_free(input, output));
                    match free {
                        Some(input) => self.take_over(at, output, self.buffer_of(input), layout),
                        None => self.make(at, output, layout, &layer),
                    }
                }
                self.highest = self.live + workspace;
            }
        }
        for tensor in inputs.iter().chain(outputs) {
            if self.ends(tensor, at) {
                self.drop(at, tensor.id);
            }
        }
    }

    /// A range of operations that the backend runs as one.
    fn fused(&mut self, kernel: Kernel, range: Range<usize>) {
        let (begin, end) = (range.start, range.end - 1);
        let inside = self.inside(range);
        for input in &inside.inputs {
            self.ensure(begin, input);
        }
        let layer = self.layer(&inside.inputs);
        let mut ending: Vec<&Use> = inside.inputs;
        ending.retain(|input| self.ends(input, end));
        if kernel.consumes {
            for input in ending.drain(..) {
                self.drop(begin, input.id);
            }
        }
        let mut made: HashMap<u64, usize> = HashMap::new();
        for output in inside.made {
            if self.ends(output, end) {
                continue;
            }
            let new = || (output.id, Layout::contiguous(&output.shape));
            let (root, layout) = inside.roots.get(&output.id).cloned().unwrap_or_else(new);
            let known = made.get(&root).copied();
            let known = known.or_else(|| self.views.get(&root).map(|view| view.buffer));
            let reused = || {
                let mut ending = ending.iter().filter(|_| kernel.in_place);
                let input = ending.find(|input| self.is_free(input, output))?;
                Some(self.buffer_of(input))
            };
            match (known, known.is_none().then(reused).flatten()) {
                (Some(buffer), _) => self.share(output, buffer, layout),
                (None, Some(buffer)) => self.take_over(begin, output, buffer, layout),
                (None, None) => self.make(begin, output, layout, &layer),
            }
            made.insert(root, self.buffer_of(output));
        }
        self.highest = self.live + kernel.workspace;
        for input in ending {
            self.drop(end, input.id);
        }
    }

    /// What goes in and out of a range of operations.
    fn inside(&self, range: Range<usize>) -> Inside<'a> {
        let mut inside = Inside::default();
        let trace = self.trace;
        for operation in &trace.operations[range] {
            let Operation::Run {
                ir,
                inputs,
                outputs,
            } = operation
            else {
                continue;
            };
            for input in inputs {
                if inside.own.contains(&input.id) {
                    continue;
                }
                match inside.inputs.iter_mut().find(|known| known.id == input.id) {
                    Some(known) => *known = input,
                    None => inside.inputs.push(input),
                }
            }
            if let ([input, ..], [output, ..]) = (&inputs[..], &outputs[..]) {
                let known = inside.roots.get(&input.id).cloned();
                let (root, layout) = known.unwrap_or_else(|| (input.id, self.layout(input)));
                if let Some(layout) = flex::view(ir, &layout, &output.shape) {
                    inside.roots.insert(output.id, (root, layout));
                }
            }
            inside.own.extend(outputs.iter().map(|output| output.id));
            inside.made.extend(outputs);
        }
        inside
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

/// Where an operation belongs.
#[derive(Default)]
struct Layer {
    name: String,
    of_stored: bool,
}

/// What goes in and out of a kernel.
#[derive(Default)]
struct Inside<'a> {
    inputs: Vec<&'a Use>,
    made: Vec<&'a Use>,
    /// The ids of what is made.
    own: HashSet<u64>,
    /// Of what is another tensor seen otherwise: that tensor, and how it lies there.
    roots: HashMap<u64, (u64, Layout)>,
}
