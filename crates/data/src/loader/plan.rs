use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::LoaderConfig;
use crate::random::mix;
use crate::{DataError, Sample, Source};

/// Everything that decides what an epoch reads; shared by the threads that read it.
pub(super) struct Plan {
    pub source: Arc<dyn Source>,
    /// Indices in the order of their visit.
    order: Vec<usize>,
    pub skip: usize,
    pub batch: usize,
    /// Seed of this epoch's views.
    views: Option<u64>,
    strict: bool,
}

/// What became of one batch of the order.
#[derive(Default)]
pub(super) struct Read {
    pub pixels: Vec<f32>,
    pub labels: Vec<i64>,
    pub visited: usize,
    /// Path and cause of every file that was left out.
    pub unreadable: Vec<(String, String)>,
}

impl Plan {
    pub fn new(source: Arc<dyn Source>, config: &LoaderConfig, epoch: usize, skip: usize) -> Plan {
        let mut order: Vec<usize> = (0..source.len()).collect();
        let (orders, views) = (mix(config.seed, 0), mix(config.seed, 1));
        if config.shuffle {
            order.shuffle(&mut StdRng::seed_from_u64(mix(orders, epoch as u64)));
        }
        Plan {
            skip: skip.min(order.len()),
            order,
            batch: config.batch,
            views: config.augment.then(|| mix(views, epoch as u64)),
            strict: config.strict,
            source,
        }
    }

    /// Batches that are left after the skipped samples.
    pub fn batches(&self) -> usize {
        (self.order.len() - self.skip).div_ceil(self.batch.max(1))
    }

    /// Reads batch `number`; gives up between two images once `stop` is set.
    ///
    /// # Errors
    ///
    /// Whatever [`Source::sample`] reports, except unreadable files unless `strict`; a panic in it.
    pub fn read(&self, number: usize, stop: &AtomicBool) -> Result<Read, DataError> {
        let start = self.skip + number * self.batch;
        let indices = &self.order[start..start.saturating_add(self.batch).min(self.order.len())];
        let values = 3 * self.source.image_size().pow(2);
        let mut read = Read {
            pixels: Vec::with_capacity(indices.len() * values),
            labels: Vec::with_capacity(indices.len()),
            visited: indices.len(),
            unreadable: Vec::new(),
        };
        for &index in indices {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            match self.sample(index) {
                Ok(Sample { pixels, label }) if pixels.len() == values => {
                    read.pixels.extend_from_slice(&pixels);
                    read.labels.push(label as i64);
                }
                Ok(sample) => {
                    return Err(DataError::SampleShape {
                        set: self.source.name(),
                        index,
                        got: sample.pixels.len(),
                        expected: values,
                    });
                }
                Err(DataError::Unreadable { path, cause }) if !self.strict => {
                    read.unreadable.push((path.display().to_string(), cause));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    /// One sample; a panic in the source or in a decoder becomes an error.
    fn sample(&self, index: usize) -> Result<Sample, DataError> {
        let view = self.views.map(|views| mix(views, index as u64));
        // Nothing of ours is left half done by a panic in there.
        catch_unwind(AssertUnwindSafe(|| self.source.sample(index, view))).unwrap_or_else(|panic| {
            Err(DataError::Panicked {
                set: self.source.name(),
                index,
                cause: message(panic.as_ref()),
            })
        })
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}
