//! Ranges of operations that a backend runs as one.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::State;
use crate::trace::layout::Layout;
use crate::trace::{Kernel, Note, Operation, Trace, Use, flex};

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

/// One behind the end of the kernel that begins here.
pub(in crate::trace) fn kernel_end(trace: &Trace, begin: usize) -> usize {
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

impl<'a> State<'a> {
    /// A range of operations that the backend runs as one.
    pub(super) fn fused(&mut self, kernel: Kernel, range: Range<usize>) {
        let (begin, end) = (range.start, range.end - 1);
        let inside = self.inside(range.clone());
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
        self.highest = self.live.saturating_add(kernel.workspace);
        for input in ending {
            self.drop(end, input.id);
        }
        let trace = self.trace;
        for operation in &trace.operations[range] {
            if let Operation::Note(note) = operation {
                self.note(end, note);
            }
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
}
