//! Which encoder to build.

use burn::tensor::Device;

use super::Encoder;
use crate::transformer::{SizeError, check_dropout, check_heads, check_sizes};

/// Sizes of an encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderConfig {
    /// Distinct tokens.
    pub vocabulary: usize,
    /// Longest sequence, tokens.
    pub context: usize,
    /// Token types.
    pub types: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width inside the feed-forward network.
    pub hidden: usize,
    /// Probability that an activation is dropped in training; attention weights are not dropped.
    pub dropout: f64,
    /// Classes of a classifier head.
    pub classes: Option<usize>,
    /// A head that fills in masked tokens, tied to the embedding.
    pub masked_head: bool,
}

impl EncoderConfig {
    /// Of all norms, as BERT.
    pub(super) const EPSILON: f64 = 1e-12;

    /// BERT base, uncased: 109,482,240 parameters.
    pub fn base() -> Self {
        Self::new(12, 12, 768)
    }

    /// BERT's vocabulary and context around `layers` of `heads` heads and `width`.
    pub fn new(layers: usize, heads: usize, width: usize) -> Self {
        Self {
            vocabulary: 30_522,
            context: 512,
            types: 2,
            layers,
            heads,
            width,
            hidden: 4 * width,
            dropout: 0.0,
            classes: None,
            masked_head: false,
        }
    }

    /// With another vocabulary.
    pub fn with_vocabulary(mut self, vocabulary: usize) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// With another context.
    pub fn with_context(mut self, context: usize) -> Self {
        self.context = context;
        self
    }

    /// With dropout, or none.
    pub fn with_dropout(mut self, dropout: f64) -> Self {
        self.dropout = dropout;
        self
    }

    /// With a classifier head.
    pub fn with_classes(mut self, classes: usize) -> Self {
        self.classes = Some(classes);
        self
    }

    /// With a head that fills in masked tokens.
    pub fn with_masked_head(mut self) -> Self {
        self.masked_head = true;
        self
    }

    /// Refuses sizes that do not fit together.
    pub fn validate(&self) -> Result<(), SizeError> {
        let sizes = [
            ("vocabulary", self.vocabulary),
            ("context", self.context),
            ("types", self.types),
            ("layers", self.layers),
            ("heads", self.heads),
            ("width", self.width),
            ("hidden", self.hidden),
            ("classes", self.classes.unwrap_or(1)),
        ];
        check_sizes(&sizes)?;
        check_heads(self.width, self.heads)?;
        check_dropout(self.dropout)
    }

    /// Trainable parameters, from the sizes alone.
    pub fn parameters(&self) -> u64 {
        let [v, c, t, l, d, h] = [
            self.vocabulary,
            self.context,
            self.types,
            self.layers,
            self.width,
            self.hidden,
        ]
        .map(|n| n as u64);
        let layer = 4 * (d * d + d) + 2 * d * h + h + d + 4 * d;
        let transform = if self.masked_head { d * d + 3 * d } else { 0 };
        let classifier = self.classes.map_or(0, |classes| (d + 1) * classes as u64);
        (v + c + t) * d + 2 * d + l * layer + d * d + d + transform + classifier
    }

    /// Builds the network in f32; weights are normal with deviation 0.02, as BERT's.
    pub fn init(&self, device: &Device) -> Result<Encoder, SizeError> {
        self.validate()?;
        Ok(Encoder::new(self, device))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_has_its_published_size() {
        assert_eq!(EncoderConfig::base().parameters(), 109_482_240);
    }
}
