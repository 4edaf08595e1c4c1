//! Writing on: prefill in chunks, then token by token from the cache.

use burn::module::Module;
use burn::tensor::{Int, Tensor, TensorData};
use leanburn_memory::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Gpt, State};

/// Why nothing can be generated.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum GenerateError {
    /// There is nothing to go on from.
    #[error("the prompt is empty; give at least one token")]
    NoPrompt,
    /// A token that the model has no embedding for.
    #[error("token {token} of the prompt is beyond the vocabulary of {vocabulary}")]
    Token {
        /// The token.
        token: i64,
        /// Distinct tokens of the model.
        vocabulary: usize,
    },
    /// The cache cannot hold a window worth the name.
    #[error("a cache of {budget} holds {tokens} tokens; 2 need {needed}")]
    Budget {
        /// What was allowed.
        budget: Bytes,
        /// Tokens that fit.
        tokens: u64,
        /// Bytes of the smallest cache.
        needed: Bytes,
    },
    /// Softmax with such a temperature is none.
    #[error("temperature must be 0 (the likeliest token) or a positive number, not {0}")]
    Temperature(f64),
}

/// How to write on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generate {
    /// Tokens to write.
    pub tokens: usize,
    /// 0 takes the likeliest token; 1 samples as the model believes.
    pub temperature: f64,
    /// Sample among this many likeliest tokens; 0 among all.
    pub top_k: usize,
    /// Of the samples.
    pub seed: u64,
    /// Most bytes of keys and values; the oldest half of the window is forgotten when it is full.
    pub cache: Option<Bytes>,
    /// Prompt tokens at a time; 0 takes all at once.
    pub prefill: usize,
}

impl Default for Generate {
    fn default() -> Self {
        Self {
            tokens: 256,
            temperature: 0.8,
            top_k: 0,
            seed: 0,
            cache: None,
            prefill: 128,
        }
    }
}

impl Generate {
    /// What `model` writes after `prompt`.
    pub fn run(&self, model: &Gpt, prompt: &[i64]) -> Result<Vec<i64>, GenerateError> {
        let vocabulary = model.config().vocabulary;
        if let Some(token) = prompt.iter().find(|t| !(0..vocabulary as i64).contains(*t)) {
            let token = *token;
            return Err(GenerateError::Token { token, vocabulary });
        }
        if prompt.is_empty() {
            return Err(GenerateError::NoPrompt);
        }
        if !(self.temperature >= 0.0 && self.temperature.is_finite()) {
            return Err(GenerateError::Temperature(self.temperature));
        }
        let window = self.window(model)?;
        let model = model.valid();
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut text = prompt.to_vec();
        let mut state = State::new(window);
        let mut unread = text.len().saturating_sub(window)..text.len();
        for _ in 0..self.tokens {
            if state.len() + unread.len() > window {
                // Full: read the newer half again, at the front of an empty window.
                state.clear();
                unread = text.len() - (window / 2).max(1)..text.len();
            }
            let logits = self.read(&model, &text[unread], &mut state);
            text.push(self.pick(logits, &mut random));
            unread = text.len() - 1..text.len();
        }
        Ok(text.split_off(prompt.len()))
    }

    /// Tokens that the model and the cache's budget allow.
    fn window(&self, model: &Gpt) -> Result<usize, GenerateError> {
        let config = model.config();
        let Some(budget) = self.cache else {
            return Ok(config.context);
        };
        let each = State::bytes_per_token(config, model.element_bytes());
        let tokens = budget.0 / each;
        if tokens < 2 {
            let needed = Bytes(2 * each);
            return Err(GenerateError::Budget {
                budget,
                tokens,
                needed,
            });
        }
        Ok(config
            .context
            .min(usize::try_from(tokens).unwrap_or(usize::MAX)))
    }

    /// Reads tokens in chunks and returns the logits behind the last one.
    fn read(&self, model: &Gpt, tokens: &[i64], state: &mut State) -> Vec<f32> {
        let size = if self.prefill == 0 {
            tokens.len()
        } else {
            self.prefill
        };
        let device = model.wte.weight.lazy_device();
        let mut last = None;
        for chunk in tokens.chunks(size) {
            let data = TensorData::new(chunk.to_vec(), [1, chunk.len()]);
            let hidden = model.hidden_with(Tensor::<2, Int>::from_data(data, &device), state);
            let [_, count, width] = hidden.dims();
            last = Some(hidden.slice([0..1, count - 1..count, 0..width]));
        }
        let logits = model.logits(last.expect("at least one token"));
        logits.into_data().iter::<f32>().collect()
    }

    fn pick(&self, logits: Vec<f32>, random: &mut StdRng) -> i64 {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
        if self.temperature == 0.0 {
            return order[0] as i64;
        }
        if self.top_k > 0 {
            order.truncate(self.top_k);
        }
        let largest = logits[order[0]];
        let weight = |token: &usize| (f64::from(logits[*token] - largest) / self.temperature).exp();
        let total: f64 = order.iter().map(weight).sum();
        let mut rest = random.random::<f64>() * total;
        let found = order.iter().find(|token| {
            rest -= weight(token);
            rest <= 0.0
        });
        *found.unwrap_or(&order[0]) as i64
    }
}

impl Gpt {
    /// Bytes of a number in keys and values.
    fn element_bytes(&self) -> usize {
        burn::tensor::DType::from(self.computing.policy.compute.dtype()).size()
    }
}
