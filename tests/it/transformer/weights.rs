//! Weight files by Hugging Face's names.

use std::path::Path;

use burn::tensor::Device;
use leanburn::models::WeightsError;
use safetensors::SafeTensors;

use super::{bert_names, golden, llama_names, tiny_bert, tiny_gpt2, tiny_llama, weights_file};
use crate::support::alone;

/// Names as Hugging Face has them, through a file and back; a prefix or none, and known extras.
#[test]
fn weights_go_out_and_in_by_hugging_faces_names() {
    let _alone = alone();
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.safetensors");
    let (model, _) = tiny_gpt2(&device)
        .load_weights(&golden("tiny_gpt2.safetensors"))
        .unwrap();
    model.save_weights(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let saved = SafeTensors::deserialize(&bytes).unwrap();
    let original = std::fs::read(golden("tiny_gpt2.safetensors")).unwrap();
    let original = SafeTensors::deserialize(&original).unwrap();
    assert_eq!(saved.len(), original.len());
    for (name, view) in original.tensors() {
        let ours = saved
            .tensor(name.strip_prefix("transformer.").unwrap())
            .unwrap();
        assert_eq!(
            (ours.shape(), ours.data()),
            (view.shape(), view.data()),
            "{name}"
        );
    }

    let path = folder.path().join("bert.safetensors");
    weights_file(&bert_names(), &path);
    let (model, _) = tiny_bert(&device).load_weights(&path, false).unwrap();
    let again = folder.path().join("again.safetensors");
    model.save_weights(&again).unwrap();
    let names = |path: &Path| -> Vec<String> {
        let bytes = std::fs::read(path).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let mut names: Vec<_> = file.names().into_iter().map(String::from).collect();
        names.sort();
        names
    };
    assert_eq!(names(&path), names(&again));
}

#[test]
fn unknown_and_missing_names_are_listed() {
    let _alone = alone();
    let device = Device::flex();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("llama.safetensors");
    let mut names = llama_names();
    names.retain(|(name, _)| name != "model.layers.1.mlp.up_proj.weight");
    names.push(("model.layers.1.mlp.bonus.weight".into(), vec![4, 4]));
    names.push((
        "model.layers.0.self_attn.rotary_emb.inv_freq".into(),
        vec![4],
    ));
    weights_file(&names, &path);
    let Err(WeightsError::Mismatch {
        missing,
        unexpected,
        ..
    }) = tiny_llama(&device).load_weights(&path)
    else {
        panic!("a mismatch");
    };
    assert_eq!(missing, ["model.layers.1.mlp.up_proj.weight"]);
    assert_eq!(unexpected, ["model.layers.1.mlp.bonus.weight"]);
}
