//! Training and validation text.

use std::sync::Arc;

use burn::tensor::Device;
use leanburn_data::tokens::{Corpus, HostTokens, SegmentedLoader, TextLoader, Tokenizer, Tokens};
use leanburn_data::{DataError, Split};

use super::mask::Masking;
use super::{Size, Text};
use crate::task::{Loaders, MicroBatch};
use crate::{Recipe, TrainError};

/// Training and validation text.
pub struct TextLoaders {
    corpus: Arc<Corpus>,
    train: Training,
    val: TextLoader,
    masking: Option<Masking>,
    tokenizer: Tokenizer,
    vocabulary: usize,
}

/// How training walks through the text.
enum Training {
    /// Independent windows in random order.
    Windows(TextLoader),
    /// In order, for a model that carries its state.
    Segments(SegmentedLoader),
}

impl TextLoaders {
    /// Opens what the recipe names.
    pub fn open(recipe: &Recipe<Text>) -> Result<Self, TrainError> {
        let (data, train, seed) = (&recipe.data, &recipe.train, recipe.train.seed);
        let corpus = Arc::new(Self::corpus(recipe)?);
        let tokens = usize::try_from(corpus.vocab()).unwrap_or(usize::MAX);
        let vocabulary = recipe.config(tokens).vocabulary();
        if vocabulary < tokens {
            return Err(TrainError::Recipe(format!(
                "vocabulary (model.vocabulary) is {vocabulary}, and the data have {tokens} tokens"
            )));
        }
        let loader = |split| {
            TextLoader::new(corpus.clone(), split, train.batch, data.context, seed)
                .map_err(DataError::from)
        };
        let training = match data.carry {
            0 => Training::Windows(loader(Split::Train)?),
            _ => {
                let (text, lanes, segment) = (corpus.clone(), train.batch, data.context);
                let loader =
                    SegmentedLoader::new(text, Split::Train, lanes, segment, data.separator);
                Training::Segments(loader.map_err(DataError::from)?)
            }
        };
        let masking = (recipe.model.preset == Size::BertBase).then(|| Masking {
            part: data.masked,
            token: data.mask_token.unwrap_or(vocabulary - 1) as i64,
            tokens: tokens as i64,
            seed,
        });
        if masking.is_some_and(|masking| masking.token >= vocabulary as i64) {
            return Err(TrainError::Recipe(format!(
                "data.mask_token must be below the vocabulary, {vocabulary}"
            )));
        }
        Ok(Self {
            train: training,
            val: loader(Split::Val)?,
            masking,
            tokenizer: tokenizer(recipe, tokens)?,
            corpus,
            vocabulary,
        })
    }

    /// The text that the recipe names.
    pub(super) fn corpus(recipe: &Recipe<Text>) -> Result<Corpus, TrainError> {
        let data = &recipe.data;
        let corpus = match data.source.as_str() {
            "jargon" => Corpus::jargon(data.val_fraction),
            path => Corpus::open(path, data.val_fraction),
        };
        Ok(corpus.map_err(DataError::from)?)
    }

    /// Distinct tokens of the network.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Distinct tokens of the data.
    pub fn tokens(&self) -> usize {
        self.corpus.vocab() as usize
    }

    /// What turns prompts into tokens, and tokens into text.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Bytes of text that a token stands for, on average.
    pub fn bytes_per_token(&self) -> f64 {
        self.corpus.bytes_per_token()
    }

    /// The batch, or what an encoder is asked of it.
    fn asked(
        &self,
        batches: impl Iterator<Item = Result<HostTokens, DataError>>,
        epoch: u64,
        skip: usize,
    ) -> impl Iterator<Item = Result<HostTokens, DataError>> {
        let masking = self.masking;
        let mut place = skip as u64;
        batches.map(move |batch| {
            let batch = batch?;
            let at = epoch << 40 ^ place;
            place += batch.visited as u64;
            Ok(match masking {
                Some(masking) => masking.apply(batch, at),
                None => batch,
            })
        })
    }
}

fn tokenizer(recipe: &Recipe<Text>, tokens: usize) -> Result<Tokenizer, TrainError> {
    let Some(path) = &recipe.data.tokenizer else {
        return Ok(Tokenizer::Bytes);
    };
    let tokenizer = Tokenizer::open(path).map_err(DataError::from)?;
    match tokenizer.vocab() == tokens as u64 {
        true => Ok(tokenizer),
        false => Err(TrainError::Recipe(format!(
            "tokenizer (data.tokenizer) {} has {} tokens, and the data have {tokens}: give the one that made them",
            path.display(),
            tokenizer.vocab(),
        ))),
    }
}

impl Loaders for TextLoaders {
    type Micro = HostTokens;

    fn train(
        &self,
        epoch: usize,
        skip: usize,
    ) -> impl Iterator<Item = Result<HostTokens, DataError>> {
        let batches: Box<dyn Iterator<Item = Result<HostTokens, DataError>> + '_> =
            match &self.train {
                Training::Windows(windows) => Box::new(windows.epoch(epoch, skip)),
                Training::Segments(segments) => Box::new(segments.segments(skip)),
            };
        self.asked(batches, epoch as u64 + 1, skip)
    }

    fn val(&self) -> impl Iterator<Item = Result<HostTokens, DataError>> {
        self.asked(self.val.epoch(0, 0), 0, 0)
    }

    fn batches(&self) -> usize {
        match &self.train {
            Training::Windows(windows) => windows.batches(),
            Training::Segments(segments) => segments.batches(),
        }
    }

    fn name(&self) -> String {
        self.corpus.name()
    }

    fn describe(&self) -> String {
        format!("{}: vocabulary {}", self.name(), self.vocabulary)
    }

    fn tell_loss(&self, loss: f64) -> String {
        let bits = loss / std::f64::consts::LN_2 / self.bytes_per_token();
        format!("loss {loss:.4}, {bits:.3} bits per byte")
    }
}

impl MicroBatch for HostTokens {
    type Batch = Tokens;

    fn visited(&self) -> usize {
        self.visited
    }

    fn items(&self) -> usize {
        self.batch * self.context
    }

    fn into_device(self, device: &Device) -> Tokens {
        self.into_device(device)
    }
}
