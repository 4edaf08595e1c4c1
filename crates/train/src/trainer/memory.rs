//! What the steps of a trainer held.

use leanburn_memory::{Bytes, Known, Mark, Measurement, Meter, Record, census, record, trace};

use crate::{OptimizerKind, Trainable};

/// Records steps and keeps the one with the highest peak.
pub(super) struct StepMemory {
    /// Where bytes are read.
    pub meter: Meter,
    /// What lived in this allocator before the model did.
    pub origin: Bytes,
    /// Of the step that was begun last.
    pub known: Known,
    optimizer_state: Bytes,
    recorded: u64,
    /// What the marks of the last step saw.
    pub last: Option<Record>,
    /// What the most demanding step so far held.
    pub largest: Option<Measurement>,
}

impl StepMemory {
    pub fn new<M: Trainable>(
        model: &M,
        optimizer: OptimizerKind,
        meter: Meter,
        origin: Bytes,
    ) -> Self {
        let census = census(model);
        Self {
            meter,
            origin,
            known: Known {
                parameters: Bytes(census.parameters.bytes.0 + census.frozen.bytes.0),
                buffers: census.buffers.bytes,
                gradients: census.parameters.bytes,
                ..Known::default()
            },
            optimizer_state: optimizer.state_bytes(census.parameters.bytes),
            recorded: 0,
            last: None,
            largest: None,
        }
    }

    /// Begins the record of a micro-step. The heap is read at every step. Reading a pool drains the device's queue, so there four steps
    /// must do, from the second update on: the first allocates what later ones keep.
    pub fn begin(&mut self, inputs: Bytes, accumulating: bool, applied: u64) {
        self.close();
        self.known.inputs = inputs;
        self.known.optimizer_state = if applied > 0 {
            self.optimizer_state
        } else {
            Bytes(0)
        };
        self.known.accumulated = if accumulating {
            self.known.gradients
        } else {
            Bytes(0)
        };
        if trace::is_tracing() {
            return record::mark(Mark::Start, Bytes(0));
        }
        let settled = applied > 0 || record::is_followed();
        let wanted = self.meter.is_exact_peak() || (settled && self.recorded < 4);
        if !wanted || self.meter.current().is_none() {
            return;
        }
        self.meter.reset_peak();
        record::start(self.meter.clone());
    }

    /// Ends the record of a step.
    pub fn close(&mut self) {
        let Some(record) = record::finish() else {
            return;
        };
        self.recorded += 1;
        let Some(measured) = record.measurement(&self.known, self.origin) else {
            return;
        };
        self.last = Some(record);
        let replaces = self
            .largest
            .as_ref()
            .is_none_or(|largest| measured.peak > largest.peak);
        if replaces || self.recorded == 2 {
            self.largest = Some(measured);
        }
    }
}
