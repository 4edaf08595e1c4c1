//! How good a network is, and what it takes.

use std::time::Instant;

use leanburn_memory::Meter;

use super::Quantizes;
use crate::task::{Loaders, MicroBatch};
use crate::{Job, Score, TrainError, Trainable};

/// Forwards that are timed.
const ROUNDS: usize = 5;

/// A network on the validation data.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Over all of them.
    pub score: Score,
    /// The most likely answer to every sample, where networks are asked for one.
    pub answers: Option<Vec<i64>>,
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
        let device = self.inference();
        let mut score = Score::default();
        let mut answers = Some(Vec::new());
        for batch in self.loaders.val() {
            let batch = batch?.into_device(&device);
            score.add(network.score(batch.clone()));
            answers = answers.and_then(|mut all: Vec<i64>| {
                all.extend(T::answers(network, batch)?);
                Some(all)
            });
        }
        Ok(Judgement { score, answers })
    }

    /// Median wall-clock seconds of a sample's forward and score, of several networks that take turns on the first
    /// validation batch.
    pub fn time<const N: usize>(&self, networks: [&T::Network; N]) -> Result<[f64; N], TrainError> {
        let (device, meter) = (self.inference(), Meter::new(&self.inference()));
        let Some(batch) = self.loaders.val().next().transpose()? else {
            return Ok([f64::NAN; N]);
        };
        let samples = batch.visited().max(1);
        let batch = batch.into_device(&device);
        let mut seconds = [const { Vec::new() }; N];
        // The first round warms up.
        for round in 0..=ROUNDS {
            for (network, seconds) in networks.iter().zip(&mut seconds) {
                let start = Instant::now();
                network.score(batch.clone());
                meter.sync();
                if round > 0 {
                    seconds.push(start.elapsed().as_secs_f64() / samples as f64);
                }
            }
        }
        Ok(seconds.map(|mut all| {
            all.sort_by(f64::total_cmp);
            all[ROUNDS / 2]
        }))
    }
}
