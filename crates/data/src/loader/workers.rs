use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};

use super::plan::{Plan, Read};
use crate::DataError;

/// Threads that read the batches of one epoch ahead: worker `i` of `n` reads batches `i`, `i + n`, `i + 2n`, ...
///
/// Its channel has no buffer: a worker holds its batch until it is asked for, and only then begins the next. So the
/// batches come in order without sorting, and each worker has one of them at most.
pub(super) struct Workers {
    lanes: Vec<Receiver<Result<Read, DataError>>>,
    threads: Vec<JoinHandle<()>>,
    stop: Arc<AtomicBool>,
}

impl Workers {
    /// Starts `count` threads, or one for each batch if there are fewer of those.
    pub fn start(plan: &Arc<Plan>, count: usize) -> Result<Workers, DataError> {
        let count = count.min(plan.batches());
        let mut workers = Workers {
            lanes: Vec::with_capacity(count),
            threads: Vec::with_capacity(count),
            stop: Arc::default(),
        };
        for first in 0..count {
            let (sender, lane) = sync_channel(0);
            let (plan, stop) = (plan.clone(), workers.stop.clone());
            let work = move || {
                for number in (first..plan.batches()).step_by(count) {
                    // Nobody is waiting any more once the lane is closed.
                    if sender.send(plan.read(number, &stop)).is_err() {
                        return;
                    }
                }
            };
            let thread = thread::Builder::new().name(format!("leanburn-data-{first}"));
            workers.threads.push(
                thread
                    .spawn(work)
                    .map_err(|cause| DataError::WorkerStart { cause })?,
            );
            workers.lanes.push(lane);
        }
        Ok(workers)
    }

    /// Batch `number`; they are asked for in order.
    pub fn receive(&self, number: usize) -> Result<Read, DataError> {
        let lane = &self.lanes[number % self.lanes.len()];
        lane.recv().unwrap_or(Err(DataError::WorkerLost))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Closing the lanes wakes the workers that wait to hand over.
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            // A panic has been reported as `WorkerLost`.
            let _ = thread.join();
        }
    }
}
