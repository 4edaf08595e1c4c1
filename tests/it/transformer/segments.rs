//! A long text in segments is the text at once, up to the gradients that end at a segment; generation
//! from the cache is generation from scratch.

use burn::module::Module;
use burn::tensor::{Device, Int, Tensor, TensorData};
use leanburn::levers::{CheckpointPolicy, Offload};
use leanburn::memory::Bytes;
use leanburn::models::transformer::gpt::{Generate, GenerateError, State};
use leanburn::models::{Gpt, GptConfig};

use crate::support::{alone, relative_error, values};

fn llama(device: &Device) -> Gpt {
    GptConfig::llama(2, 2, 16)
        .with_vocabulary(23)
        .with_context(16)
        .init(device)
        .unwrap()
}

fn gpt2(device: &Device) -> Gpt {
    GptConfig::gpt2(2, 2, 16)
        .with_vocabulary(23)
        .with_context(16)
        .init(device)
        .unwrap()
}

fn text(shape: [usize; 2], device: &Device) -> Tensor<2, Int> {
    let data: Vec<i64> = (0..shape[0] * shape[1])
        .map(|i| (i * i * 7 + i * 3) as i64 % 23)
        .collect();
    Tensor::from_data(TensorData::new(data, shape), device)
}

#[test]
fn segments_are_the_whole_text() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let tokens = text([2, 15], &device);
    for model in [llama(&device), gpt2(&device)] {
        let whole = values(model.hidden(tokens.clone(), None));
        for segment in [1, 4, 15] {
            let mut state = State::new(64);
            let parts = tokens.clone().split(segment, 1).into_iter();
            let parts = parts
                .map(|part| model.hidden_with(part, &mut state))
                .collect();
            let error = relative_error(&values(Tensor::cat(parts, 1)), &whole);
            assert!(error < 1e-5, "segments of {segment}: {error}");
            assert_eq!(state.len(), 15);
        }
    }
}

/// The same through recomputed blocks.
#[test]
fn segments_train_under_checkpointing() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let tokens = text([2, 12], &device);
    let model = llama(&device);
    let run = |policy: &str| {
        let model = model
            .clone()
            .with_checkpoint(policy.parse::<CheckpointPolicy>().unwrap(), Offload::None);
        let mut state = State::new(4);
        let mut all = Vec::new();
        for part in tokens.clone().split(4, 1) {
            let loss = model.loss_sum_with(part.clone(), part, &mut state);
            let grads = loss.backward();
            all.extend(values(loss));
            all.extend(values(model.wte.weight.base().grad(&grads).unwrap()));
            assert_eq!(state.len(), 4);
        }
        all
    };
    assert_eq!(run("none"), run("every-block"));
}

#[test]
fn a_new_document_sees_nothing_of_the_old_one() {
    let _alone = alone();
    let device = Device::flex();
    let model = llama(&device);
    let (old, new) = (
        text([2, 6], &device),
        text([2, 5], &device).add_scalar(1).remainder_scalar(23),
    );
    let fresh = values(model.hidden(new.clone(), None));
    let mut state = State::new(64);
    model.hidden_with(old.clone(), &mut state);
    state.reset(&[true, false]);
    let mixed = values(model.hidden_with(new.clone(), &mut state));
    let lane = fresh.len() / 2;
    assert!(relative_error(&mixed[..lane], &fresh[..lane]) < 1e-5);
    assert!(relative_error(&mixed[lane..], &fresh[lane..]) > 1e-3);
    state.reset(&[true, true]);
    assert!(state.is_empty());
}

/// What the model would write if it read everything again for each token.
fn slowly(model: &Gpt, prompt: &[i64], count: usize) -> Vec<i64> {
    let model = model.valid();
    let mut text = prompt.to_vec();
    for _ in 0..count {
        let data = TensorData::new(text.clone(), [1, text.len()]);
        let logits = model.forward(Tensor::from_data(data, &Device::flex()), None);
        let last: Vec<i64> = logits.argmax(2).into_data().iter::<i64>().collect();
        text.push(*last.last().unwrap());
    }
    text.split_off(prompt.len())
}

#[test]
fn generation_from_the_cache_is_generation_from_scratch() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let prompt = [3, 1, 4, 1, 5];
    for model in [llama(&device), gpt2(&device)] {
        for prefill in [0, 2] {
            let greedy = Generate {
                tokens: 8,
                temperature: 0.0,
                prefill,
                ..Generate::default()
            };
            assert_eq!(
                greedy.run(&model, &prompt).unwrap(),
                slowly(&model, &prompt, 8)
            );
        }
        // Beyond the context the window moves on.
        let long = Generate {
            tokens: 40,
            ..Generate::default()
        };
        let written = long.run(&model, &prompt).unwrap();
        assert_eq!(written.len(), 40);
        assert_eq!(long.run(&model, &prompt).unwrap(), written, "the same seed");
        assert_ne!(
            Generate { seed: 1, ..long }.run(&model, &prompt).unwrap(),
            written
        );
    }
}

#[test]
fn the_cache_keeps_to_its_budget() {
    let _alone = alone();
    let model = llama(&Device::flex().autodiff());
    let each = State::bytes_per_token(model.config(), 4);
    assert_eq!(each, 2 * 2 * 16 * 4);
    let budget = |tokens| Generate {
        tokens: 20,
        cache: Some(Bytes(tokens * each)),
        ..Generate::default()
    };
    assert_eq!(
        budget(4).run(&model, &[1, 2, 3, 4, 5, 6]).unwrap().len(),
        20
    );
    let error = budget(1).run(&model, &[1]).unwrap_err();
    assert!(
        matches!(error, GenerateError::Budget { tokens: 1, .. }),
        "{error}"
    );
    let nothing = Generate::default().run(&model, &[]).unwrap_err();
    assert_eq!(nothing, GenerateError::NoPrompt);
    let beyond = Generate::default().run(&model, &[23]).unwrap_err();
    assert!(matches!(beyond, GenerateError::Token { token: 23, .. }));
}
