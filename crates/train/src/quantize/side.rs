//! What a network is worth and what it takes, in f32 or in integers.

use std::path::Path;

use leanburn_compress::{Quantized, file};
use leanburn_memory::table::size;
use leanburn_memory::{Bytes, Meter};
use serde_json::{Value, json};

use super::{Judgement, Quantizes};
use crate::{Job, TrainError, Trainable};

/// Batches whose forward is measured.
const BATCHES: [usize; 2] = [1, 64];

/// One form of a network.
#[derive(Clone, Debug)]
pub struct Side {
    /// How good it is.
    pub judgement: Judgement,
    /// Its parameters and buffers in the device's memory; `None` where that is not reported.
    pub resident: Option<Bytes>,
    /// Its file.
    pub disk: Bytes,
    /// Above that, the peak of a forward of 1 and of 64 samples; `None` where the device has no exact peak.
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

/// Both forms as cells, line by line: what, f32, int8, and their ratio or difference.
pub fn side_by_side<T: Quantizes>(float: &Side, int8: &Side) -> Vec<Vec<String>> {
    let measure = T::MEASURE;
    let value = |side: &Side| format!("{:.3}{}", (measure.of)(&side.judgement.score), measure.unit);
    let sizes = |label: String, whole: Option<Bytes>, part: Option<Bytes>| {
        let ratio = part.zip(whole).filter(|(_, whole)| whole.0 > 0);
        let ratio = ratio.map(|(part, whole)| format!("{:.3}x", part.0 as f64 / whole.0 as f64));
        vec![label, size(whole), size(part), ratio.unwrap_or_default()]
    };
    let mut lines = vec![
        ["", "f32", "int8", ""].map(String::from).to_vec(),
        vec![
            measure.key.replace('_', " "),
            value(float),
            value(int8),
            measure.change(&float.judgement.score, &int8.judgement.score),
        ],
        sizes("in memory".into(), float.resident, int8.resident),
        sizes("on disk".into(), Some(float.disk), Some(int8.disk)),
    ];
    let peaks = float.forward_peaks.into_iter().zip(int8.forward_peaks);
    for (batch, (float, int8)) in BATCHES.iter().zip(peaks) {
        let label = format!("forward of {batch}, above that");
        lines.push(sizes(label, float, int8));
    }
    if let (Some(before), Some(now)) = (float.seconds, int8.seconds) {
        let ms = |seconds: f64| format!("{:.2} ms", 1e3 * seconds);
        let ratio = format!("{:.2}x", now / before);
        lines.push(vec!["a sample".into(), ms(before), ms(now), ratio]);
    }
    if let Some(agreement) = int8.judgement.agreement(&float.judgement) {
        let told = format!("{:.2} %", 100.0 * agreement);
        lines.push(vec!["same answer".into(), String::new(), told]);
    }
    lines
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
