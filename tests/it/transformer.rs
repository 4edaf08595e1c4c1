//! Gpt and Encoder: equality with Hugging Face, weights in and out, segments, generation, bytes.

mod bytes;
mod segments;
mod weights;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use burn::tensor::{Bool, DType, Device, Int, Tensor, TensorData};
use leanburn::levers::{CrossEntropy, Policy, Precision};
use leanburn::memory::census;
use leanburn::models::transformer::gpt::Preset;
use leanburn::models::{Encoder, EncoderConfig, Gpt, GptConfig};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::support::{alone, closed_form, relative_error, values};

/// Float32 lands within 1.1e-6 of float64 here; a wrong GELU or epsilon moves more than 2e-5.
const TOLERANCE: f32 = 2e-5;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

/// What `benches/peers/golden_transformers.py` left.
struct Golden(HashMap<String, (Vec<usize>, Vec<u8>)>);

impl Golden {
    fn open(name: &str) -> Self {
        let bytes = std::fs::read(golden(name)).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let all = file.tensors().into_iter();
        Self(
            all.map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec())))
                .collect(),
        )
    }

    fn floats(&self, name: &str) -> Vec<f32> {
        let words = self.0[name].1.chunks_exact(4);
        words
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    }

    fn ints(&self, name: &str, device: &Device) -> Tensor<2, Int> {
        let (shape, bytes) = &self.0[name];
        let words = bytes.chunks_exact(8);
        let data: Vec<i64> = words
            .map(|b| i64::from_le_bytes(b.try_into().unwrap()))
            .collect();
        Tensor::from_data(TensorData::new(data, shape.as_slice()), device)
    }

    fn padding(&self, device: &Device) -> Tensor<2, Bool> {
        self.ints("mask", device).equal_elem(0)
    }

    fn near(&self, name: &str, actual: Vec<f32>) {
        let error = relative_error(&actual, &self.floats(name));
        assert!(error <= TOLERANCE, "{name}: {error}");
    }
}

/// A parameter by its name and shape in Hugging Face's library.
type Named = (String, Vec<usize>);

/// Writes closed-form weights as `golden_transformers.py` fills them, in a file as Hugging Face writes it.
fn weights_file(named: &[Named], path: &Path) {
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = named
        .iter()
        .map(|(name, shape)| {
            let scale = |c: f64| match shape.as_slice() {
                _ if name.ends_with("bias") => 0.1 * c,
                [_] => 1.0 + 0.1 * c,
                _ if name.contains(".wte.") || name.contains(".wpe.") => 0.5 * c,
                _ if name.contains("embed") => 0.1 * c,
                [rows, columns] => {
                    let fan_in = if name.contains(".c_") { rows } else { columns };
                    c * (3.0 / *fan_in as f64).sqrt()
                }
                other => panic!("{other:?}"),
            };
            let count = shape.iter().product::<usize>() as u64;
            let data = (0..count).flat_map(|k| (scale(closed_form(name, k)) as f32).to_le_bytes());
            (name.clone(), shape.clone(), data.collect())
        })
        .collect();
    let views = tensors.iter().map(|(name, shape, data)| {
        (
            name.as_str(),
            TensorView::new(Dtype::F32, shape.clone(), data).unwrap(),
        )
    });
    safetensors::serialize_to_file(views.collect::<Vec<_>>(), None, path).unwrap();
}

fn named(list: &[(&str, &[usize])]) -> Vec<Named> {
    list.iter()
        .map(|(name, shape)| (name.to_string(), shape.to_vec()))
        .collect()
}

fn tiny_gpt2(device: &Device) -> Gpt {
    GptConfig::gpt2(3, 4, 32)
        .with_vocabulary(67)
        .with_context(24)
        .init(device)
        .unwrap()
}

fn llama_names() -> Vec<Named> {
    let mut all = named(&[("model.embed_tokens.weight", &[67, 32])]);
    for layer in 0..2 {
        let of_layer: [(&str, &[usize]); 9] = [
            ("self_attn.q_proj.weight", &[32, 32]),
            ("self_attn.k_proj.weight", &[32, 32]),
            ("self_attn.v_proj.weight", &[32, 32]),
            ("self_attn.o_proj.weight", &[32, 32]),
            ("mlp.gate_proj.weight", &[48, 32]),
            ("mlp.up_proj.weight", &[48, 32]),
            ("mlp.down_proj.weight", &[32, 48]),
            ("input_layernorm.weight", &[32]),
            ("post_attention_layernorm.weight", &[32]),
        ];
        let prefixed = |(name, shape): (String, _)| (format!("model.layers.{layer}.{name}"), shape);
        all.extend(named(&of_layer).into_iter().map(prefixed));
    }
    all.extend(named(&[
        ("model.norm.weight", &[32]),
        ("lm_head.weight", &[67, 32]),
    ]));
    all
}

fn tiny_llama(device: &Device) -> Gpt {
    let mut config = GptConfig::llama(2, 4, 32)
        .with_vocabulary(67)
        .with_context(24);
    config.hidden = 48;
    config.init(device).unwrap()
}

fn bert_names() -> Vec<Named> {
    let mut all = named(&[
        ("embeddings.word_embeddings.weight", &[61, 32]),
        ("embeddings.position_embeddings.weight", &[24, 32]),
        ("embeddings.token_type_embeddings.weight", &[2, 32]),
        ("embeddings.LayerNorm.weight", &[32]),
        ("embeddings.LayerNorm.bias", &[32]),
    ]);
    for layer in 0..2 {
        let square: &[usize] = &[32, 32];
        let of_layer: [(&str, &[usize]); 16] = [
            ("attention.self.query.weight", square),
            ("attention.self.query.bias", &[32]),
            ("attention.self.key.weight", square),
            ("attention.self.key.bias", &[32]),
            ("attention.self.value.weight", square),
            ("attention.self.value.bias", &[32]),
            ("attention.output.dense.weight", square),
            ("attention.output.dense.bias", &[32]),
            ("attention.output.LayerNorm.weight", &[32]),
            ("attention.output.LayerNorm.bias", &[32]),
            ("intermediate.dense.weight", &[64, 32]),
            ("intermediate.dense.bias", &[64]),
            ("output.dense.weight", &[32, 64]),
            ("output.dense.bias", &[32]),
            ("output.LayerNorm.weight", &[32]),
            ("output.LayerNorm.bias", &[32]),
        ];
        let prefixed =
            |(name, shape): (String, _)| (format!("encoder.layer.{layer}.{name}"), shape);
        all.extend(named(&of_layer).into_iter().map(prefixed));
    }
    all.extend(named(&[
        ("pooler.dense.weight", &[32, 32]),
        ("pooler.dense.bias", &[32]),
    ]));
    all
}

fn tiny_bert(device: &Device) -> Encoder {
    let mut config = EncoderConfig::new(2, 4, 32)
        .with_vocabulary(61)
        .with_context(24);
    config.hidden = 64;
    config.init(device).unwrap()
}

/// Targets of the language models: the next token, none for the last and for those that are padding.
fn shifted(tokens: &Tensor<2, Int>, padding: Option<Tensor<2, Bool>>) -> Tensor<2, Int> {
    let [batch, count] = tokens.dims();
    let mut targets = tokens.clone();
    if let Some(padding) = padding {
        targets = targets.mask_fill(padding, CrossEntropy::default().ignore);
    }
    let none = Tensor::full([batch, 1], CrossEntropy::default().ignore, &tokens.device());
    Tensor::cat(vec![targets.slice([0..batch, 1..count]), none], 1)
}

fn equals_hugging_face(model: &Gpt, file: &str, gradients: &[(&str, Weight)]) {
    let golden = Golden::open(file);
    let device = Device::flex().autodiff();
    let tokens = golden.ints("ids", &device);
    for (prefix, padding, counted) in [
        ("", None, 32.0),
        ("padded.", Some(golden.padding(&device)), 27.0),
    ] {
        let targets = shifted(&tokens, padding.clone());
        golden.near(
            &format!("{prefix}logits"),
            values(model.forward(tokens.clone(), padding.clone())),
        );
        let loss = model
            .loss_sum(tokens.clone(), targets, padding)
            .div_scalar(counted);
        golden.near(&format!("{prefix}loss"), values(loss.clone()));
        let grads = loss.backward();
        for (name, weight) in gradients {
            if !prefix.is_empty() && !golden.0.contains_key(&format!("{prefix}grad.{name}")) {
                continue;
            }
            golden.near(&format!("{prefix}grad.{name}"), weight(model, &grads));
        }
    }
}

/// The gradient of one weight, in the order in which PyTorch stores it.
type Weight = fn(&Gpt, &burn::tensor::Gradients) -> Vec<f32>;

macro_rules! gradient {
    ($model:ident => $param:expr) => {
        |$model, grads| values($param.base().grad(grads).unwrap())
    };
    ($model:ident => transposed $param:expr) => {
        |$model, grads| values($param.base().grad(grads).unwrap().transpose())
    };
}

fn gpt2_block(model: &Gpt, index: usize) -> &leanburn::models::transformer::gpt::Gpt2Block {
    match &model.h[index] {
        leanburn::models::transformer::gpt::Block::Gpt2(block) => block,
        _ => panic!("a GPT-2"),
    }
}

fn llama_block(model: &Gpt, index: usize) -> &leanburn::models::transformer::gpt::LlamaBlock {
    match &model.h[index] {
        leanburn::models::transformer::gpt::Block::Llama(block) => block,
        _ => panic!("a Llama"),
    }
}

#[test]
fn gpt2_equals_hugging_face() {
    let _alone = alone();
    let model = tiny_gpt2(&Device::flex().autodiff());
    let (model, report) = model
        .load_weights(&golden("tiny_gpt2.safetensors"))
        .unwrap();
    assert_eq!(report.loaded, 40);
    for chunk in [None, Some(5)] {
        let model = model.clone().with_chunks(chunk, chunk);
        equals_hugging_face(
            &model,
            "gpt2.safetensors",
            &[
                ("transformer.wte.weight", gradient!(m => m.wte.weight)),
                (
                    "transformer.wpe.weight",
                    gradient!(m => m.wpe.as_ref().unwrap().weight),
                ),
                (
                    "transformer.h.0.ln_1.weight",
                    gradient!(m => gpt2_block(m, 0).ln_1.gamma),
                ),
                (
                    "transformer.h.0.attn.c_attn.weight",
                    gradient!(m => gpt2_block(m, 0).c_attn.weight),
                ),
                (
                    "transformer.h.1.mlp.c_fc.weight",
                    gradient!(m => gpt2_block(m, 1).c_fc.weight),
                ),
                (
                    "transformer.h.2.attn.c_proj.bias",
                    gradient!(m => gpt2_block(m, 2).c_proj.bias.as_ref().unwrap()),
                ),
            ],
        );
    }
}

#[test]
fn llama_equals_hugging_face() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("llama.safetensors");
    weights_file(&llama_names(), &path);
    let (model, report) = tiny_llama(&Device::flex().autodiff())
        .load_weights(&path)
        .unwrap();
    assert_eq!(report.loaded, 21);
    equals_hugging_face(
        &model,
        "llama.safetensors",
        &[
            ("model.embed_tokens.weight", gradient!(m => m.wte.weight)),
            (
                "model.layers.0.input_layernorm.weight",
                gradient!(m => llama_block(m, 0).input_layernorm.gamma),
            ),
            (
                "model.layers.0.self_attn.q_proj.weight",
                gradient!(m => transposed llama_block(m, 0).q_proj.weight),
            ),
            (
                "model.layers.0.self_attn.k_proj.weight",
                gradient!(m => transposed llama_block(m, 0).k_proj.weight),
            ),
            (
                "model.layers.1.mlp.gate_proj.weight",
                gradient!(m => transposed llama_block(m, 1).gate_proj.weight),
            ),
            (
                "lm_head.weight",
                gradient!(m => transposed m.lm_head.as_ref().unwrap().weight),
            ),
        ],
    );
}

#[test]
fn bert_equals_hugging_face() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bert.safetensors");
    weights_file(&bert_names(), &path);
    let device = Device::flex().autodiff();
    let (model, report) = tiny_bert(&device).load_weights(&path, false).unwrap();
    assert_eq!(report.loaded, 39);
    let golden = Golden::open("bert.safetensors");
    let padding = golden.padding(&device);
    let types = golden.ints("token_type_ids", &device);
    let hidden = model.hidden(
        golden.ints("ids", &device),
        Some(types),
        Some(padding.clone()),
    );
    golden.near("last_hidden_state", values(hidden.clone()));
    let pooled = model.pooled(hidden.clone());
    golden.near("pooler_output", values(pooled.clone()));

    let weights = |name: &str, count: u64| -> Tensor<1> {
        let data: Vec<f32> = (0..count).map(|k| closed_form(name, k) as f32).collect();
        Tensor::from_data(data.as_slice(), &device)
    };
    let seen = padding.bool_not().float().reshape([2, 17, 1]);
    let weighted = hidden * weights("loss.last_hidden_state", 1088).reshape([2, 17, 32]) * seen;
    let pooled = pooled * weights("loss.pooler_output", 64).reshape([2, 32]);
    let loss = (pooled.sum() + weighted.sum()) / 2.0;
    golden.near("loss", values(loss.clone()));
    let grads = loss.backward();
    let near = |name: &str, param: Tensor<2>, transposed: bool| {
        let grad = param.grad(&grads).unwrap();
        golden.near(
            &format!("grad.{name}"),
            values(if transposed { grad.transpose() } else { grad }),
        );
    };
    near(
        "embeddings.word_embeddings.weight",
        model.word_embeddings.weight.base(),
        false,
    );
    near(
        "embeddings.position_embeddings.weight",
        model.position_embeddings.weight.base(),
        false,
    );
    near(
        "embeddings.token_type_embeddings.weight",
        model.token_type_embeddings.weight.base(),
        false,
    );
    near(
        "encoder.layer.0.attention.self.query.weight",
        model.layer[0].query.weight.base(),
        true,
    );
    near(
        "encoder.layer.1.intermediate.dense.weight",
        model.layer[1].intermediate.weight.base(),
        true,
    );
    let norm = model.embeddings_norm.gamma.base().grad(&grads).unwrap();
    golden.near("grad.embeddings.LayerNorm.weight", values(norm));
}

/// Trap B25, and the closed form against what is really built.
#[test]
fn parameters_are_counted_from_sizes() {
    let _alone = alone();
    let device = Device::flex();
    for config in [
        GptConfig::gpt2(3, 4, 32),
        GptConfig::llama(2, 4, 32),
        Preset::Tiny.config(),
    ] {
        let model = config.init(&device).unwrap();
        assert_eq!(
            census(&model).parameters.elements,
            config.parameters(),
            "{config:?}"
        );
    }
    let config = EncoderConfig::new(2, 4, 32)
        .with_classes(3)
        .with_masked_head();
    let model = config.init(&device).unwrap();
    assert_eq!(census(&model).parameters.elements, config.parameters());
}

/// The classifier reads the pooled first token, in f32 whatever the layers compute in.
#[test]
fn an_encoder_classifies() {
    let _alone = alone();
    let device = Device::flex().autodiff();
    let config = EncoderConfig::new(2, 4, 32)
        .with_vocabulary(61)
        .with_classes(3);
    let model = config.init(&device).unwrap();
    let half = model.with_policy(Policy::computing(Precision::Bf16));
    let tokens = Tensor::<2, Int>::from_data([[3, 1, 4], [1, 5, 9]], &device);
    let logits = half.classify(tokens.clone(), None, None);
    assert_eq!((logits.dims(), logits.dtype()), ([2, 3], DType::F32));
    let classifier = half.classifier.as_ref().unwrap();
    let pooled = half.pooled(half.hidden(tokens, None, None));
    let bias = classifier.bias.as_ref().unwrap().val();
    let expected = pooled.matmul(classifier.weight.val()) + bias.unsqueeze();
    assert!(relative_error(&values(logits.clone()), &values(expected)) < 1e-5);
    let grads = logits.sum().backward();
    assert!(classifier.weight.val().grad(&grads).is_some());
    assert!(half.word_embeddings.weight.val().grad(&grads).is_some());
}
