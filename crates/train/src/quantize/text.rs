//! Transformers in integers.

use std::path::Path;

use leanburn_compress::{Calibration, smooth};
use leanburn_data::tokens::Tokens;

use super::{Measured, Quantizes};
use crate::text::{Network, TextModel};
use crate::{Score, Text, TrainError};

/// Paths of a decoder's layers begin with this.
const GPT: &str = "network.Gpt.";
/// And those of an encoder's.
const ENCODER: &str = "network.Encoder.";

impl Quantizes for Text {
    const MEASURE: Measured = Measured {
        key: "bits_per_byte",
        of: Score::bits_per_byte,
        unit: "",
        more_is_better: false,
    };

    fn folded(model: TextModel) -> Result<TextModel, TrainError> {
        Ok(model)
    }

    fn without_norms(model: TextModel) -> TextModel {
        model
    }

    fn smoothed(
        mut model: TextModel,
        calibration: &Calibration,
        alpha: f32,
    ) -> Result<TextModel, TrainError> {
        let Network::Gpt(gpt) = &mut model.network else {
            return Err(TrainError::Recipe(
                "smoothing needs norms that only linear layers read: an encoder's are read by the residual stream too"
                    .into(),
            ));
        };
        for pair in gpt.norms_and_readers() {
            let (names, mut readers): (Vec<_>, Vec<_>) = pair.readers.into_iter().unzip();
            let largest = calibration.largest(&format!("{GPT}{}", names[0]));
            let largest = largest.unwrap_or_default();
            smooth(pair.gamma, pair.beta, &mut readers, &largest, alpha)?;
        }
        Ok(model)
    }

    fn weight_only(model: &TextModel) -> Vec<String> {
        let (prefix, names): (_, &[&str]) = match &model.network {
            // The loss multiplies by the head in chunks of its own.
            Network::Gpt(gpt) if gpt.lm_head.is_some() => (GPT, &["lm_head"]),
            Network::Gpt(_) => (GPT, &[]),
            // Filling in tokens needs no pooler.
            Network::Encoder(_) => (ENCODER, &["pooler"]),
        };
        names.iter().map(|name| format!("{prefix}{name}")).collect()
    }

    fn answers(_model: &TextModel, _batch: Tokens) -> Option<Vec<i64>> {
        None
    }

    fn save_float(model: &TextModel, path: &Path) -> Result<(), TrainError> {
        model.save_weights(path)
    }

    fn published(model: &TextModel) -> (impl Fn(&str) -> String, bool) {
        let name = |path: &str| match &model.network {
            Network::Gpt(gpt) => gpt.published_name(path.strip_prefix(GPT).unwrap_or(path)),
            Network::Encoder(encoder) => {
                encoder.published_name(path.strip_prefix(ENCODER).unwrap_or(path))
            }
        };
        let out_first = match &model.network {
            Network::Gpt(gpt) => gpt.published_out_first(),
            Network::Encoder(_) => true,
        };
        (name, out_first)
    }
}
