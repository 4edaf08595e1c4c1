use std::fmt;

use tokenizers::ModelWrapper;

use super::error::one_line;
use super::hash::fnv1a;
use super::{TextError, TokenizerId};

/// A tokenizer of Hugging Face's `tokenizer.json`, as [`Tokenizer::Json`](super::Tokenizer::Json) holds it.
///
/// Text is encoded without the special tokens that a post-processor would add around it, and without the file's
/// truncation and padding. Special tokens that the text spells out are encoded as such.
pub struct JsonTokenizer {
    inner: tokenizers::Tokenizer,
    vocab: u64,
    id: TokenizerId,
}

impl JsonTokenizer {
    /// `name` is for error messages; `json` is the text of the file.
    pub(super) fn new(name: &str, json: &[u8]) -> Result<JsonTokenizer, TextError> {
        let failed = |cause| TextError::BadTokenizer {
            name: name.to_owned(),
            cause,
        };
        let mut inner =
            tokenizers::Tokenizer::from_bytes(json).map_err(|cause| failed(one_line(cause)))?;
        inner.with_padding(None);
        let truncation = inner.with_truncation(None);
        truncation.map_err(|cause| failed(one_line(cause)))?;
        // Not the number of tokens: files in use have gaps between their ids.
        let Some(last) = inner.get_vocab(true).into_values().max() else {
            return Err(failed("its vocabulary is empty".into()));
        };
        let kind = match inner.get_model() {
            ModelWrapper::BPE(_) => "BPE",
            ModelWrapper::WordPiece(_) => "WordPiece",
            ModelWrapper::WordLevel(_) => "WordLevel",
            ModelWrapper::Unigram(_) => "Unigram",
        };
        Ok(JsonTokenizer {
            inner,
            vocab: u64::from(last) + 1,
            id: TokenizerId {
                name: kind.into(),
                fingerprint: fnv1a(json),
            },
        })
    }

    /// One more than the highest id, added tokens included.
    pub fn vocab(&self) -> u64 {
        self.vocab
    }

    /// The kind of its model and the hash of its file.
    pub fn id(&self) -> &TokenizerId {
        &self.id
    }

    /// The tokens of a text that begins `offset` bytes into the whole.
    pub(super) fn encode(&self, text: &str, offset: u64) -> Result<Vec<u32>, TextError> {
        let encoding = self.inner.encode_fast(text, false);
        let encoding = encoding.map_err(|cause| TextError::Tokenizing {
            offset,
            cause: one_line(cause),
        })?;
        Ok(encoding.get_ids().to_vec())
    }

    pub(super) fn decode(&self, tokens: &[u32]) -> Result<String, TextError> {
        // The library would leave out what it does not know.
        let unknown = |&&token: &&u32| self.inner.id_to_token(token).is_none();
        if let Some(&token) = tokens.iter().find(unknown) {
            let vocab = self.vocab;
            return Err(TextError::Undecodable { token, vocab });
        }
        let text = self.inner.decode(tokens, false);
        text.map_err(|cause| TextError::Decoding {
            cause: one_line(cause),
        })
    }
}

impl fmt::Debug for JsonTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonTokenizer({}, vocabulary {})", self.id, self.vocab)
    }
}
