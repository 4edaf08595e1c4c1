//! What a network is worth and what it takes, in f32 or in integers.

use std::path::Path;

use leanburn_compress::{Quantized, file};
use leanburn_memory::{Bytes, Meter};
use serde_json::{Value, json};

use super::{Judgement, Quantizes};
use crate::{Job, TrainError, Trainable};

/// Batches whose forward is measured.
pub const BATCHES: [usize; 2] = [1, 64];

/// One form of a network.
#[derive(Clone, Debug)]
pub struct Side {
    /// How good it is.
    pub judgement: Judgement,
    /// Its parameters and buffers in the device's memory; `None` where that is not reported.
    pub resident: Option<Bytes>,
    /// Its file.
    pub disk: Bytes,
    /// Above that, the peak of a forward of [`BATCHES`]; `None` where the device has no exact peak.
    pub forward_peaks: [Option<Bytes>; 2],
    /// Wall-clock seconds of a sample, see [`Job::time`].
    pub seconds: Option<f64>,
}

impl Side {
    /// Machine-readable.
    pub fn to_json<T: Quantizes>(&self) -> Value {
        let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
        let [one, many] = self.forward_peaks.map(bytes);
        let mut json = json!({
            "loss": self.judgement.score.loss(),
            "resident_bytes": bytes(self.resident),
            "disk_bytes": self.disk.0,
            "forward_peak": one,
            "forward_peak_64": many,
            "seconds": self.seconds,
        });
        for (key, of) in T::MEASURES {
            json[*key] = of(&self.judgement.score).into();
        }
        json
    }
}

impl<T: Quantizes> Job<T> {
    /// What `make` makes, and the bytes that it left on the device of inference.
    pub fn resident<R>(
        &self,
        make: impl FnOnce() -> Result<R, TrainError>,
    ) -> Result<(R, Option<Bytes>), TrainError> {
        let meter = Meter::new(&self.inference());
        let before = meter.current();
        let made = make()?;
        let left = meter.current().zip(before);
        let left = left.map(|(now, before)| Bytes(now.0.saturating_sub(before.0)));
        Ok((made, left))
    }

    /// Judges a network in f32 and saves it to `path`.
    pub fn float_side(
        &self,
        network: &T::Network,
        resident: Option<Bytes>,
        path: &Path,
    ) -> Result<Side, TrainError> {
        T::save_float(network, path)?;
        self.side(network, resident, path)
    }

    /// Judges a network in integers and saves it to `path`, with the recipe.
    pub fn int8_side(
        &self,
        quantized: &Quantized<T::Network>,
        resident: Option<Bytes>,
        path: &Path,
    ) -> Result<Side, TrainError> {
        let recipe = toml::to_string(&self.recipe);
        let recipe = recipe.map_err(|cause| TrainError::Recipe(cause.to_string()))?;
        file::save(
            quantized.model.clone(),
            &quantized.scheme,
            Some(recipe),
            path,
        )?;
        self.side(&quantized.model, resident, path)
    }

    fn side(
        &self,
        network: &T::Network,
        resident: Option<Bytes>,
        path: &Path,
    ) -> Result<Side, TrainError> {
        let disk = std::fs::metadata(path).map_err(TrainError::io(path))?.len();
        Ok(Side {
            judgement: self.judge(network)?,
            resident,
            disk: Bytes(disk),
            forward_peaks: BATCHES.map(|batch| self.forward_peak(network, batch)),
            seconds: None,
        })
    }

    /// Bytes above what is there before, at the peak of a forward and score of `batch` samples; `None` where the
    /// device has no exact peak.
    pub fn forward_peak(&self, network: &T::Network, batch: usize) -> Option<Bytes> {
        let meter = Meter::new(&self.inference());
        if !meter.is_exact_peak() {
            return None;
        }
        let mut recipe = self.recipe.clone();
        recipe.train.batch = batch;
        let facts = T::facts_of(&self.loaders);
        let blank = || T::blank(&recipe, &facts, &self.inference());
        network.score(blank());
        let (batch, before) = (blank(), meter.current()?);
        meter.reset_peak();
        network.score(batch);
        Some(Bytes(meter.peak()?.0.saturating_sub(before.0)))
    }
}
