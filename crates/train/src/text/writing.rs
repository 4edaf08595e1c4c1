//! What a trained decoder writes.

use clap::Args;
use leanburn_data::DataError;
use leanburn_memory::Bytes;
use leanburn_models::transformer::gpt::Generate;

use super::{Text, TextModel};
use crate::{Job, TrainError};

/// Flags for the sample at the end of a run.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct WritingArgs {
    /// What the trained decoder goes on from.
    #[arg(long, value_name = "TEXT", default_value = "hacker: n. ")]
    pub prompt: String,
    /// Tokens that it writes.
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub sample: usize,
    /// 0 takes the likeliest token, 1 samples as the model believes.
    #[arg(long, value_name = "T", default_value_t = 0.7)]
    pub temperature: f64,
    /// Most bytes of keys and values while it writes, such as 4MiB; the window is shorter then.
    #[arg(long, value_name = "BYTES")]
    pub cache: Option<Bytes>,
}

impl WritingArgs {
    /// The prompt, and what the decoder goes on with; `None` from an encoder.
    pub fn write(&self, job: &Job<Text>, model: &TextModel) -> Result<Option<String>, TrainError> {
        let (Some(gpt), tokenizer) = (model.gpt(), job.loaders.tokenizer()) else {
            return Ok(None);
        };
        let prompt = tokenizer.encode(self.prompt.as_bytes());
        let prompt = prompt.map_err(DataError::from)?;
        let prompt: Vec<i64> = prompt.into_iter().map(i64::from).collect();
        let generate = Generate {
            tokens: self.sample,
            temperature: self.temperature,
            cache: self.cache,
            seed: job.recipe.train.seed,
            ..Generate::default()
        };
        let written = generate
            .run(gpt, &prompt)
            .map_err(|error| TrainError::Recipe(error.to_string()))?;
        let written: Vec<u32> = written.into_iter().map(|token| token as u32).collect();
        let written = tokenizer.decode(&written).map_err(DataError::from)?;
        let written = String::from_utf8_lossy(&written);
        Ok(Some(format!("{}{written}", self.prompt)))
    }
}
