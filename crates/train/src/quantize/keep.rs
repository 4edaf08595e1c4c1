//! Which layers are worth their float weights.

use leanburn_compress::{Outputs, Quantized, Settings};

use super::{Judgement, Quantizes, Session};
use crate::TrainError;

/// A layer left in float, and what came of it.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Path of the layer.
    pub layer: String,
    /// The network with it, and all before it, in float.
    pub judgement: Judgement,
}

/// The quantized layers whose outputs are known, worst SQNR first.
pub fn worst_first<M>(quantized: &Quantized<M>, outputs: &Outputs) -> Vec<(String, f64)> {
    let known = quantized.layers.iter().filter_map(|report| {
        let path = &report.layer.path;
        Some((path.clone(), outputs.noise(path)?.sqnr()))
    });
    let mut all: Vec<_> = known.collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

impl<T: Quantizes> Session<'_, T> {
    /// What the network would be with one of its layers left in float.
    pub fn without(&self, settings: &Settings, layer: &str) -> Result<Judgement, TrainError> {
        let mut settings = settings.clone();
        settings.keep_float.push(layer.to_owned());
        self.job.judge(&self.quantize(&settings)?.model)
    }

    /// Leaves one layer after the other in float, those whose outputs suffer most first, until the network is
    /// worse than `float` by at most `drop` of the measure's unit; at most `most` of them.
    ///
    /// `settings.keep_float` names them afterwards.
    pub fn keep_float(
        &self,
        settings: &mut Settings,
        order: &[(String, f64)],
        (most, drop): (usize, f64),
        float: &Judgement,
        quantized: &Judgement,
    ) -> Result<Vec<Kept>, TrainError> {
        let mut kept = Vec::new();
        let mut now = quantized.clone();
        for (layer, _) in order.iter().take(most) {
            if T::MEASURE.loss(&float.score, &now.score) <= drop {
                break;
            }
            settings.keep_float.push(layer.clone());
            now = self.job.judge(&self.quantize(settings)?.model)?;
            kept.push(Kept {
                layer: layer.clone(),
                judgement: now.clone(),
            });
        }
        Ok(kept)
    }
}
