mod batches;
mod plan;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use batches::Batches;
use plan::Plan;

use crate::Source;

/// How a [`Loader`] makes batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoaderConfig {
    /// Images in a batch; the last batch of an epoch may be shorter. 0 makes every epoch an error.
    pub batch: usize,
    /// Threads that read batches ahead; 0 reads in the calling thread. Never changes what is read.
    pub workers: usize,
    /// Source of every random choice.
    pub seed: u64,
    /// A new order every epoch, drawn from the seed and the epoch; otherwise the source's order.
    pub shuffle: bool,
    /// Training views, drawn from the seed, the epoch and the index; otherwise the evaluation transform.
    pub augment: bool,
    /// End an epoch with an error at the first unreadable file, instead of going on without it.
    pub strict: bool,
}

/// Epochs of batches from a [`Source`]: the same seed gives the same batches, with any number of workers, on any run
/// with the same version of `rand`.
///
/// At most `workers + 1` batches exist at once: one that each worker reads or holds until it is asked for, and the one
/// handed over last. Each worker has one decoded image beside it.
pub struct Loader {
    source: Arc<dyn Source>,
    config: LoaderConfig,
    unreadable: Arc<Unreadable>,
}

impl Loader {
    pub fn new(source: Arc<dyn Source>, config: LoaderConfig) -> Loader {
        Loader {
            source,
            config,
            unreadable: Arc::default(),
        }
    }

    pub fn source(&self) -> &dyn Source {
        self.source.as_ref()
    }

    /// Batches in a whole epoch, the short last one included; fewer come if all files of a batch are unreadable.
    pub fn batches(&self) -> usize {
        self.source.len().div_ceil(self.config.batch.max(1))
    }

    /// The batches of an epoch after the first `skip_samples` of its order.
    ///
    /// Where that is a multiple of the batch size, they are exactly those that a whole epoch yields from there on: to
    /// resume, add up [`HostBatch::visited`](crate::HostBatch::visited).
    ///
    /// # Errors
    ///
    /// The iterator ends after its first error: an unreadable file if `strict`, a source that fails or panics, a
    /// batch size of 0, or a whole epoch in which nothing was readable.
    pub fn epoch(&self, epoch: usize, skip_samples: usize) -> Batches {
        let plan = Plan::new(self.source.clone(), &self.config, epoch, skip_samples);
        Batches::start(plan, self.config.workers, self.unreadable.clone())
    }

    /// Paths of the files skipped so far, in the order in which they were found, each once.
    pub fn unreadable(&self) -> Vec<String> {
        self.unreadable.lock().names.clone()
    }
}

/// The files skipped so far, by all epochs of a loader.
#[derive(Default)]
struct Unreadable(Mutex<Names>);

#[derive(Default)]
struct Names {
    names: Vec<String>,
    known: HashSet<String>,
}

impl Unreadable {
    fn record(&self, name: String) {
        let mut names = self.lock();
        if names.known.insert(name.clone()) {
            names.names.push(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        // A list of names stays whole, whoever panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
