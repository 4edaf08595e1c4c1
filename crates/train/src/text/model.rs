//! How a Transformer learns from tokens.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use burn::module::Module;
use burn::tensor::{DType, Int, Tensor};
use leanburn_data::tokens::Tokens;
use leanburn_memory::Bytes;
use leanburn_models::transformer::gpt::State;
use leanburn_models::{Encoder, Gpt};

use crate::{Score, TrainError, Trainable};

/// A network with what its loss needs to know of the text.
#[derive(Module, Debug)]
pub struct TextModel {
    /// The network.
    pub network: Network,
    #[module(skip)]
    pub(super) bytes_per_token: f64,
    /// What segments carry over; not saved with a run, so a resumed one begins with nothing.
    #[module(skip)]
    pub(super) carried: Option<Arc<Mutex<State>>>,
}

/// Either kind.
#[derive(Module, Debug)]
// There is one of them in a run.
#[allow(clippy::large_enum_variant)]
pub enum Network {
    /// Predicts the next token.
    Gpt(Gpt),
    /// Fills in masked tokens.
    Encoder(Encoder),
}

impl TextModel {
    /// Saves the f32 weights as safetensors under Hugging Face's names.
    pub fn save_weights(&self, path: &Path) -> Result<(), TrainError> {
        match &self.network {
            Network::Gpt(gpt) => gpt.save_weights(path)?,
            Network::Encoder(encoder) => encoder.save_weights(path)?,
        }
        Ok(())
    }

    /// The decoder, if it is one.
    pub fn gpt(&self) -> Option<&Gpt> {
        match &self.network {
            Network::Gpt(gpt) => Some(gpt),
            Network::Encoder(_) => None,
        }
    }

    fn loss_sum(&self, inputs: Tensor<2, Int>, targets: Tensor<2, Int>) -> Tensor<1> {
        match &self.network {
            Network::Gpt(gpt) => gpt.loss_sum(inputs, targets, None),
            Network::Encoder(encoder) => encoder.loss_sum(inputs, targets, None),
        }
    }
}

impl Trainable for TextModel {
    type Batch = Tokens;

    fn samples(batch: &Tokens) -> usize {
        batch.counted
    }

    fn input_bytes(batch: &Tokens) -> Bytes {
        let of =
            |shape: &[usize], dtype: DType| Bytes::of_elements(shape, dtype).unwrap_or_default();
        let each = |tokens: &Tensor<2, Int>| of(&tokens.dims(), tokens.dtype()).0;
        Bytes(each(&batch.inputs) + each(&batch.targets))
    }

    fn loss(&self, batch: Tokens) -> Tensor<1> {
        let Tokens {
            inputs,
            targets,
            reset,
            counted,
        } = batch;
        let sum = match (&self.network, &self.carried) {
            (Network::Gpt(gpt), Some(carried)) => {
                let mut state = carried.lock().unwrap_or_else(PoisonError::into_inner);
                state.reset(&reset);
                gpt.loss_sum_with(inputs, targets, &mut state)
            }
            _ => self.loss_sum(inputs, targets),
        };
        sum.div_scalar(counted.max(1) as f64)
    }

    fn score(&self, batch: Tokens) -> Score {
        let samples = batch.counted;
        Score {
            samples,
            loss_sum: self.loss_sum(batch.inputs, batch.targets).into_scalar(),
            bytes: samples as f64 * self.bytes_per_token,
            ..Score::default()
        }
    }
}
