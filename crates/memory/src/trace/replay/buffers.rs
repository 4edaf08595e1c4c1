//! Making, sharing and dropping buffers, one operation at a time.

use super::{Buffer, Effect, State, View};
use crate::trace::Use;
use crate::trace::layout::Layout;

/// Where an operation belongs.
#[derive(Default)]
pub(super) struct Layer {
    name: String,
    of_stored: bool,
}

impl State<'_> {
    pub(super) fn layout(&self, tensor: &Use) -> Layout {
        match self.views.get(&tensor.id) {
            Some(view) => view.layout.clone(),
            None => Layout::contiguous(&tensor.shape),
        }
    }

    /// Tensors that come from outside of the trace exist from their first use on.
    pub(super) fn ensure(&mut self, at: usize, tensor: &Use) {
        if !self.views.contains_key(&tensor.id) {
            self.make(
                at,
                tensor,
                Layout::contiguous(&tensor.shape),
                &Layer::default(),
            );
        }
    }

    pub(super) fn make(&mut self, at: usize, tensor: &Use, layout: Layout, layer: &Layer) {
        let buffer = self.replay.buffers.len();
        let bytes = self.runtime.size(tensor);
        self.replay.buffers.push(Buffer {
            bytes,
            span: at..usize::MAX,
            held: vec![(at, tensor.clone())],
            stored: None,
            layer: layer.name.clone(),
            of_stored: layer.of_stored,
            views: 1,
        });
        self.live += bytes;
        self.views.insert(tensor.id, View { buffer, layout });
    }

    pub(super) fn share(&mut self, tensor: &Use, buffer: usize, layout: Layout) {
        self.replay.buffers[buffer].views += 1;
        self.views.insert(tensor.id, View { buffer, layout });
    }

    /// Writes `tensor` where another was.
    pub(super) fn take_over(&mut self, at: usize, tensor: &Use, buffer: usize, layout: Layout) {
        self.share(tensor, buffer, layout);
        self.replay.buffers[buffer].held.push((at, tensor.clone()));
    }

    pub(super) fn drop(&mut self, at: usize, id: u64) {
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

    pub(super) fn ends(&self, tensor: &Use, at: usize) -> bool {
        tensor.last || self.last_use[&tensor.id] <= at
    }

    pub(super) fn buffer_of(&self, tensor: &Use) -> usize {
        self.views[&tensor.id].buffer
    }

    /// Whether an output of this size may take over the memory of `input`.
    pub(super) fn is_free(&self, input: &Use, output: &Use) -> bool {
        let view = &self.views[&input.id];
        let buffer = &self.replay.buffers[view.buffer];
        buffer.views == 1 && view.layout.is_dense() && buffer.bytes == self.runtime.size(output)
    }

    /// The layer whose parameters are read, else the one that the first input comes from.
    pub(super) fn layer(&self, inputs: &[&Use]) -> Layer {
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

    pub(super) fn run(&mut self, at: usize, inputs: &[Use], outputs: &[Use], effect: Effect) {
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
}
