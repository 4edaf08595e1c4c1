//! How good a network is, and what it takes.

use std::time::Instant;

use leanburn_memory::Meter;

use super::Quantizes;
use crate::task::{Loaders, MicroBatch};
use crate::{Job, Score, TrainError, Trainable};

/// A network on the validation data.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Over all of them.
    pub score: Score,
    /// The most likely answer to every sample, where networks are asked for one.
    pub answers: Option<Vec<i64>>,
    /// Wall-clock seconds of a sample's forward and score, over all whole batches but the first.
    pub seconds: Option<f64>,
}

impl Judgement {
    /// Share of the answers that are those of `other`, 0 to 1.
    pub fn agreement(&self, other: &Self) -> Option<f64> {
        let pairs = self.answers.as_ref()?.iter().zip(other.answers.as_ref()?);
        let same = pairs.clone().filter(|(a, b)| a == b).count();
        Some(same as f64 / pairs.len().max(1) as f64)
    }
}

impl<T: Quantizes> Job<T> {
    /// Runs the validation data through a network without autodiff.
    pub fn judge(&self, network: &T::Network) -> Result<Judgement, TrainError> {
        let (device, meter) = (self.inference(), Meter::new(&self.inference()));
        let mut score = Score::default();
        let mut answers = Some(Vec::new());
        let (mut seconds, mut timed) = (0.0, 0);
        for (index, batch) in self.loaders.val().enumerate() {
            let batch = batch?;
            let samples = batch.visited();
            let batch = batch.into_device(&device);
            let start = Instant::now();
            score.add(network.score(batch.clone()));
            meter.sync();
            if index > 0 {
                (seconds, timed) = (seconds + start.elapsed().as_secs_f64(), timed + samples);
            }
            answers = answers.and_then(|mut all: Vec<i64>| {
                all.extend(T::answers(network, batch)?);
                Some(all)
            });
        }
        Ok(Judgement {
            score,
            answers,
            seconds: (timed > 0).then(|| seconds / timed as f64),
        })
    }
}
