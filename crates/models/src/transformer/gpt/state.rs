//! Keys and values that one segment of a text leaves for the next.

use burn::tensor::{Bool, Device, Int, Tensor};

use super::block::Surroundings;
use super::{Gpt, GptConfig};

/// What a decoder remembers of earlier tokens: the keys and values of each layer, without gradients.
///
/// In training it carries over from segment to segment, so that attention reaches further back than the
/// backward does (Dai et al. 2019, <https://arxiv.org/abs/1901.02860>, section 3.2). In generation it is the
/// key/value cache.
#[derive(Clone, Debug)]
pub struct State {
    layers: Vec<[Tensor<4>; 2]>,
    /// `[batch, remembered]`, true where a token belongs to another document or is padding.
    hidden: Option<Tensor<2, Bool>>,
    limit: usize,
    seen: usize,
}

impl State {
    /// Empty, for at most `limit` tokens: older ones are forgotten.
    pub fn new(limit: usize) -> Self {
        Self {
            layers: Vec::new(),
            hidden: None,
            limit,
            seen: 0,
        }
    }

    /// Tokens remembered.
    pub fn len(&self) -> usize {
        self.layers.first().map_or(0, |[keys, _]| keys.dims()[2])
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of one token of one sequence in all layers, with `element` bytes a number.
    pub fn bytes_per_token(config: &GptConfig, element: usize) -> u64 {
        2 * config.layers as u64 * config.width as u64 * element as u64
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Forgets what the sequences marked here remember: a new document begins in them.
    pub fn reset(&mut self, lanes: &[bool]) {
        if self.is_empty() || !lanes.contains(&true) {
            return;
        }
        if !lanes.contains(&false) {
            return self.clear();
        }
        let device = self.layers[0][0].device();
        let shape = [lanes.len(), self.len()];
        let lanes: Vec<i64> = lanes.iter().map(|reset| i64::from(*reset)).collect();
        let lanes = Tensor::<1, Int>::from_data(lanes.as_slice(), &device);
        let lanes = lanes.equal_elem(1).reshape([shape[0], 1]).expand(shape);
        self.hidden = Some(match self.hidden.take() {
            Some(hidden) => hidden.bool_or(lanes),
            None => lanes,
        });
    }

    /// Which of the remembered and the coming tokens are hidden.
    fn padding(&self, batch: usize, coming: usize, device: &Device) -> Option<Tensor<2, Bool>> {
        let hidden = self.hidden.clone()?;
        let seen = Tensor::<2, Int>::zeros([batch, coming], device).equal_elem(1);
        Some(Tensor::cat(vec![hidden, seen], 1))
    }

    /// Takes up what the blocks recorded.
    fn take(&mut self, recorded: Vec<Tensor<4>>, hidden: Option<Tensor<2, Bool>>) {
        let mut recorded = recorded.into_iter();
        let mut layers = Vec::new();
        while let (Some(keys), Some(values)) = (recorded.next(), recorded.next()) {
            layers.push([keys, values].map(|tensor| {
                let [batch, heads, len, width] = tensor.dims();
                let start = len.saturating_sub(self.limit);
                tensor
                    .slice([0..batch, 0..heads, start..len, 0..width])
                    .detach()
            }));
        }
        self.hidden = hidden.map(|hidden| {
            let [batch, len] = hidden.dims();
            hidden.slice([0..batch, len.saturating_sub(self.limit)..len])
        });
        self.layers = layers;
    }
}

impl Gpt {
    /// The next segment of texts of which `state` remembers the tokens before; `[batch, tokens, width]`.
    ///
    /// Gradients end at the segment's first token. Rotary positions go on without end; learned ones do not, and
    /// end at the context.
    ///
    /// # Panics
    ///
    /// With learned positions, beyond the context.
    pub fn hidden_with(&self, tokens: Tensor<2, Int>, state: &mut State) -> Tensor<3> {
        let [batch, count] = tokens.dims();
        let padding = state.padding(batch, count, &tokens.device());
        let around = Surroundings {
            padding: padding.clone(),
            record: true,
            ..self.surroundings(state.len() + count, &tokens)
        };
        let x = self.embed(tokens, state.seen);
        let (hidden, recorded) = self.run(x, |layer| Surroundings {
            past: state.layers.get(layer).cloned(),
            ..around.clone()
        });
        state.take(recorded, padding);
        state.seen += count;
        hidden
    }

    /// [`Gpt::loss_sum`] of a segment.
    pub fn loss_sum_with(
        &self,
        tokens: Tensor<2, Int>,
        targets: Tensor<2, Int>,
        state: &mut State,
    ) -> Tensor<1> {
        self.loss_of(self.hidden_with(tokens, state), targets)
    }
}
