//! Tensors that a backend cannot address are refused before the first step.

use leanburn_levers::{Attention, CrossEntropy};

use super::Text;
use super::recipe::Config;
use crate::{Backend, BackendKind, Recipe, TrainError};

/// Elements that kernels of the GPU backends count, in 32 bits.
const GPU_ELEMENTS: u128 = u32::MAX as u128;
/// Token ids there are 32-bit integers with a sign.
const GPU_TOKENS: u128 = i32::MAX as u128;
/// A CPU tensor is one allocation; a tebibyte in f32 is beyond any machine, and sums of such do not overflow.
const CPU_ELEMENTS: u128 = 1 << 38;

/// Checks the largest tensors of a step.
pub(super) fn check(
    recipe: &Recipe<Text>,
    tokens: usize,
    backend: Backend,
) -> Result<(), TrainError> {
    let sizes = match recipe.config(tokens) {
        Config::Gpt(c) => [c.vocabulary, c.width, c.hidden, c.heads],
        Config::Encoder(c) => [c.vocabulary, c.width, c.hidden, c.heads],
    };
    let [vocabulary, width, hidden, heads] = sizes.map(|size| size as u128);
    let [batch, context] = [recipe.train.batch, recipe.data.context].map(|size| size as u128);
    let chunk = |size: Option<usize>, all: u128, usual: u128| match size {
        Some(0) => all,
        Some(size) => all.min(size as u128),
        None => all.min(usual),
    };
    let all_tokens = batch.saturating_mul(context);
    let keys = context.saturating_add(recipe.data.carry as u128);
    let usual = Attention::default();
    let attention = recipe.model.attention_chunk;
    let queries = chunk(attention, context, usual.queries as u128);
    let scores = queries.saturating_mul(chunk(attention, keys, usual.keys as u128));
    let logits = chunk(
        recipe.model.loss_chunk,
        all_tokens,
        CrossEntropy::default().chunk_of(sizes[0]) as u128,
    );
    let (limit, most_tokens) = match backend.kind {
        BackendKind::Flex => (CPU_ELEMENTS, u128::MAX),
        _ => (GPU_ELEMENTS, GPU_TOKENS),
    };
    if vocabulary > most_tokens {
        return Err(TrainError::Recipe(format!(
            "vocabulary {vocabulary} is beyond the token ids of {backend}, {most_tokens}"
        )));
    }
    for (what, elements, less) in [
        (
            "the embedding, vocabulary x width",
            vocabulary.saturating_mul(width),
            "a smaller vocabulary or width",
        ),
        (
            "an activation, batch x context x hidden",
            all_tokens.saturating_mul(hidden),
            "a smaller batch or context",
        ),
        (
            "a chunk of scores, batch x heads x queries x keys",
            batch.saturating_mul(heads).saturating_mul(scores),
            "a smaller --attention-chunk or batch",
        ),
        (
            "a chunk of logits, tokens x vocabulary",
            logits.saturating_mul(vocabulary),
            "a smaller --loss-chunk",
        ),
    ] {
        if elements > limit {
            return Err(TrainError::Recipe(format!(
                "{what}, has {elements} elements, and {backend} addresses {limit}: use {less}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_beyond_32_bits_are_refused_and_not_wrapped() {
        let mut recipe = Recipe::<Text>::default();
        check(&recipe, 256, BackendKind::Wgpu.into()).unwrap();
        // 2^32 + 2^16 scores would wrap to 65,536.
        recipe.data.context = 1 << 16;
        recipe.model.attention_chunk = Some(0);
        recipe.train.batch = 1;
        let error = check(&recipe, 256, BackendKind::Wgpu.into())
            .unwrap_err()
            .to_string();
        assert!(error.contains("attention-chunk"), "{error}");
        check(&recipe, 256, BackendKind::Flex.into()).unwrap();
        recipe.model.attention_chunk = None;
        check(&recipe, 256, BackendKind::Wgpu.into()).unwrap();
        recipe.train.batch = usize::MAX;
        let error = check(&recipe, 256, BackendKind::Flex.into())
            .unwrap_err()
            .to_string();
        assert!(error.contains("smaller batch"), "{error}");
        let error = check(&Recipe::default(), 1 << 31, BackendKind::Wgpu.into())
            .unwrap_err()
            .to_string();
        assert!(error.contains("token ids"), "{error}");
    }
}
