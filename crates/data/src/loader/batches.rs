use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Unreadable;
use super::plan::{Plan, Read};
use super::workers::Workers;
use crate::{DataError, HostBatch};

/// The batches of one epoch, in order; made by [`Loader::epoch`](crate::Loader::epoch).
///
/// Ends after its first error. Dropping it stops its threads and waits for them, for one image at most.
pub struct Batches {
    plan: Arc<Plan>,
    /// `None` once the epoch is over.
    feed: Option<Feed>,
    /// The batch to read next.
    number: usize,
    /// Samples that were visited since the last batch was yielded.
    visited: usize,
    /// Whether a batch was yielded, or might have been before the skipped samples.
    any: bool,
    /// Why the first unreadable file was skipped.
    first_cause: Option<String>,
    unreadable: Arc<Unreadable>,
}

/// Where batches come from.
enum Feed {
    CallingThread,
    Workers(Workers),
    /// The epoch could not begin.
    Failed(DataError),
}

impl Batches {
    pub(super) fn start(plan: Plan, workers: usize, unreadable: Arc<Unreadable>) -> Batches {
        let plan = Arc::new(plan);
        let feed = match workers {
            _ if plan.batch == 0 => Feed::Failed(DataError::BatchSize),
            0 => Feed::CallingThread,
            _ => Workers::start(&plan, workers).map_or_else(Feed::Failed, Feed::Workers),
        };
        Batches {
            any: plan.skip > 0,
            plan,
            feed: Some(feed),
            number: 0,
            visited: 0,
            first_cause: None,
            unreadable,
        }
    }

    /// The next batch of the order, as far as it is readable; `None` after the last.
    fn read(&mut self) -> Result<Option<Read>, DataError> {
        let number = self.number;
        self.number += 1;
        match self.feed.take() {
            None => Ok(None),
            Some(Feed::Failed(error)) => Err(error),
            Some(_) if number == self.plan.batches() => Ok(None),
            Some(feed) => {
                let read = match &feed {
                    Feed::Workers(workers) => workers.receive(number)?,
                    _ => self.plan.read(number, &AtomicBool::new(false))?,
                };
                self.feed = Some(feed);
                Ok(Some(read))
            }
        }
    }

    /// The next batch that has any image.
    fn advance(&mut self) -> Result<Option<HostBatch>, DataError> {
        while let Some(read) = self.read()? {
            self.visited += read.visited;
            for (name, cause) in read.unreadable {
                self.first_cause
                    .get_or_insert_with(|| format!("{name}: {cause}"));
                self.unreadable.record(name);
            }
            if !read.labels.is_empty() {
                self.any = true;
                return Ok(Some(HostBatch {
                    pixels: read.pixels,
                    labels: read.labels,
                    image_size: self.plan.source.image_size(),
                    visited: std::mem::take(&mut self.visited),
                }));
            }
        }
        // Said once: an epoch that is asked again stays silent.
        match std::mem::replace(&mut self.any, true) {
            true => Ok(None),
            false => Err(DataError::NothingReadable {
                set: self.plan.source.name(),
                cause: self
                    .first_cause
                    .take()
                    .unwrap_or_else(|| "it has none".into()),
            }),
        }
    }
}

impl Iterator for Batches {
    type Item = Result<HostBatch, DataError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.advance();
        if batch.is_err() {
            self.feed = None;
            self.any = true;
        }
        batch.transpose()
    }
}
