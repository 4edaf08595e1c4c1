//! A few updates of a job, watched: what one backend does with a recipe.

use std::time::Instant;

use leanburn_memory::record::Point;
use leanburn_memory::{Bytes, Measurement, Prediction, heap};

use crate::task::{Builds, MicroBatch};
use crate::{Job, TrainError};

/// What the updates took.
#[derive(Clone, Debug)]
pub struct Probe {
    /// Mean loss of every update.
    pub losses: Vec<f64>,
    /// Wall-clock seconds of every update, from its first batch to the end of its work on the device. The first
    /// compiles and tunes kernels.
    pub seconds: Vec<f64>,
    /// Updates that were skipped.
    pub skipped: u64,
    /// The most demanding step; `None` where the backend does not report its memory.
    pub measured: Option<Measurement>,
    /// What was predicted of it.
    pub predicted: Option<Prediction>,
    /// What was alive at the marks of the last step that was recorded, without what was there before the model.
    pub points: Vec<Point>,
    /// What the pool holds at the end, in use or not; `None` for the heap.
    pub reserved: Option<Bytes>,
}

impl<T: Builds> Job<T> {
    /// Trains for so many updates, from the start of the data, and saves nothing. A window may reach over the
    /// end of an epoch.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn probe(&self, updates: u64) -> Result<Probe, TrainError> {
        let predicted = self.predicted()?;
        if let Some(room) = self.heap {
            let there = heap::current();
            heap::set_limit(Some(Bytes(there.saturating_add(room.0))));
        }
        let mut trainer = self.trainer(Self::network)?;
        let device = self.device();
        let (mut losses, mut seconds) = (Vec::new(), Vec::new());
        let mut points = Vec::new();
        let mut batches = (0..).flat_map(|epoch| self.train(epoch, 0));
        while trainer.tried() < updates {
            let start = Instant::now();
            for batch in batches.by_ref().take(self.recipe.train.accumulate) {
                trainer.micro_step(batch?.into_device(&device));
            }
            let update = trainer.update()?;
            trainer.meter().sync();
            seconds.push(start.elapsed().as_secs_f64());
            losses.push(update.loss);
            if let Some(record) = trainer.record() {
                points.clone_from(&record.points);
            }
            eprintln!("update {}: loss {:.6}", trainer.tried(), update.loss);
        }
        let origin = trainer.origin().0;
        for point in &mut points {
            point.live = point.live.saturating_sub(origin);
            point.peak = point.peak.saturating_sub(origin);
        }
        Ok(Probe {
            losses,
            seconds,
            skipped: trainer.skipped(),
            measured: trainer.measurement().cloned(),
            predicted,
            points,
            reserved: trainer.meter().reserved(),
        })
    }
}
