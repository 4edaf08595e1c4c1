//! How published files name the parameters of our models.

/// The names of one family of files.
pub(super) struct Names {
    /// Linear weights are `[out, in]`, as PyTorch's `Linear` stores them.
    pub transposed: bool,
    /// Prefix of the head that a new one may replace; empty where there is none.
    pub head: &'static str,
    /// Whether a name is outside the head, in the form that Burn's stores take.
    pub not_head: fn(&str, &str) -> bool,
    /// Spellings that some files have, and the usual ones; applied first, when reading.
    aliases: &'static [(&'static str, &'static str)],
    /// Parts of names in the file and in the model, in the order in which they are replaced.
    pairs: &'static [(&'static str, &'static str)],
    /// Ends, or with a `*` beginnings, of names that the model has no use for.
    extras: &'static [&'static str],
}

impl Names {
    /// Regular expressions from the file's names to the model's.
    pub fn patterns(&self) -> Vec<(String, &'static str)> {
        let all = self.aliases.iter().chain(self.pairs);
        all.map(|(from, to)| (escaped(from), to.trim_start_matches('^')))
            .collect()
    }

    /// The other way.
    pub fn patterns_to_file(&self) -> Vec<(String, &'static str)> {
        let pairs = self.pairs.iter().rev();
        pairs
            .map(|(to, from)| (escaped(from), to.trim_start_matches('^')))
            .collect()
    }

    /// A name of the model as the file has it.
    pub fn in_file(&self, name: &str) -> String {
        let mut name = name.to_owned();
        for (file, model) in self.pairs.iter().rev() {
            name = match (model.strip_prefix('^'), file.trim_start_matches('^')) {
                (Some(start), file) => match name.strip_prefix(start) {
                    Some(rest) => format!("{file}{rest}"),
                    None => name,
                },
                (None, file) => name.replace(model, file),
            };
        }
        name.replace(".gamma", ".weight").replace(".beta", ".bias")
    }

    /// Whether a tensor of the file is none of the model's parameters, and known to be none.
    pub fn is_extra(&self, name: &str) -> bool {
        self.extras
            .iter()
            .any(|extra| match extra.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name.ends_with(extra),
            })
    }
}

fn escaped(part: &str) -> String {
    part.replace('.', r"\.")
}

pub(super) const RESNET: Names = Names {
    transposed: true,
    head: "fc.",
    not_head: |name, _| !name.starts_with("fc."),
    aliases: &[],
    pairs: &[
        (".downsample.0.", ".downsample.conv."),
        (".downsample.1.", ".downsample.bn."),
    ],
    extras: &["num_batches_tracked"],
};

pub(super) const GPT2: Names = Names {
    // Hugging Face's `Conv1D` is `[in, out]`, as Burn's `Linear`.
    transposed: false,
    head: "lm_head.",
    not_head: |name, _| !name.starts_with("lm_head."),
    aliases: &[("^transformer.", "")],
    pairs: &[
        (".attn.c_attn.", ".Gpt2.c_attn."),
        (".attn.c_proj.", ".Gpt2.c_proj."),
        (".mlp.c_fc.", ".Gpt2.c_fc."),
        (".mlp.c_proj.", ".Gpt2.c_out."),
        (".ln_1.weight", ".Gpt2.ln_1.gamma"),
        (".ln_1.bias", ".Gpt2.ln_1.beta"),
        (".ln_2.weight", ".Gpt2.ln_2.gamma"),
        (".ln_2.bias", ".Gpt2.ln_2.beta"),
        ("ln_f.weight", "ln_f.gamma"),
        ("ln_f.bias", "ln_f.beta"),
    ],
    // The causal masks of older files, and the tied head.
    extras: &[".attn.bias", ".attn.masked_bias", "lm_head.weight"],
};

const LLAMA_PAIRS: &[(&str, &str)] = &[
    ("^model.embed_tokens.", "^wte."),
    (".self_attn.q_proj.", ".Llama.q_proj."),
    (".self_attn.k_proj.", ".Llama.k_proj."),
    (".self_attn.v_proj.", ".Llama.v_proj."),
    (".self_attn.o_proj.", ".Llama.o_proj."),
    (".mlp.gate_proj.", ".Llama.gate_proj."),
    (".mlp.up_proj.", ".Llama.up_proj."),
    (".mlp.down_proj.", ".Llama.down_proj."),
    (".input_layernorm.weight", ".Llama.input_layernorm.gamma"),
    (
        ".post_attention_layernorm.weight",
        ".Llama.post_attention_layernorm.gamma",
    ),
    ("^model.layers.", "^h."),
    ("^model.norm.weight", "^ln_f.gamma"),
];

pub(super) const LLAMA: Names = Names {
    transposed: true,
    head: "lm_head.",
    not_head: |name, _| !name.starts_with("lm_head."),
    aliases: &[],
    pairs: LLAMA_PAIRS,
    extras: &["rotary_emb.inv_freq"],
};

pub(super) const LLAMA_TIED: Names = Names {
    extras: &["rotary_emb.inv_freq", "lm_head.weight"],
    ..LLAMA
};

pub(super) const BERT: Names = Names {
    transposed: true,
    head: "classifier.",
    not_head: |name, _| !name.starts_with("classifier."),
    aliases: &[
        ("^bert.", ""),
        ("LayerNorm.gamma", "LayerNorm.weight"),
        ("LayerNorm.beta", "LayerNorm.bias"),
    ],
    pairs: &[
        ("^embeddings.LayerNorm.weight", "^embeddings_norm.gamma"),
        ("^embeddings.LayerNorm.bias", "^embeddings_norm.beta"),
        ("^embeddings.word_embeddings.", "^word_embeddings."),
        ("^embeddings.position_embeddings.", "^position_embeddings."),
        (
            "^embeddings.token_type_embeddings.",
            "^token_type_embeddings.",
        ),
        ("^encoder.layer.", "^layer."),
        (".attention.self.query.", ".query."),
        (".attention.self.key.", ".key."),
        (".attention.self.value.", ".value."),
        (".attention.output.dense.", ".attention_output."),
        (
            ".attention.output.LayerNorm.weight",
            ".attention_norm.gamma",
        ),
        (".attention.output.LayerNorm.bias", ".attention_norm.beta"),
        (".intermediate.dense.", ".intermediate."),
        (".output.LayerNorm.weight", ".output_norm.gamma"),
        (".output.LayerNorm.bias", ".output_norm.beta"),
        (".output.dense.", ".output."),
        ("^pooler.dense.", "^pooler."),
        ("^cls.predictions.transform.dense.", "^transform.dense."),
        (
            "^cls.predictions.transform.LayerNorm.weight",
            "^transform.norm.gamma",
        ),
        (
            "^cls.predictions.transform.LayerNorm.bias",
            "^transform.norm.beta",
        ),
    ],
    extras: &[
        "embeddings.position_ids",
        "embeddings.token_type_ids",
        "cls.*",
        "transform.*",
    ],
};

pub(super) const BERT_MASKED: Names = Names {
    // The tied decoder, its bias, and the next-sentence head.
    extras: &[
        "embeddings.position_ids",
        "embeddings.token_type_ids",
        "cls.predictions.bias",
        "cls.predictions.decoder.weight",
        "cls.predictions.decoder.bias",
        "cls.seq_relationship.*",
    ],
    ..BERT
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        let cases: [(&Names, &[(&str, &str)]); 3] = [
            (
                &GPT2,
                &[
                    ("h.3.attn.c_proj.weight", "h.3.Gpt2.c_proj.weight"),
                    ("ln_f.bias", "ln_f.beta"),
                ],
            ),
            (
                &LLAMA,
                &[
                    (
                        "model.layers.1.mlp.up_proj.weight",
                        "h.1.Llama.up_proj.weight",
                    ),
                    ("model.norm.weight", "ln_f.gamma"),
                ],
            ),
            (
                &BERT,
                &[
                    (
                        "encoder.layer.0.attention.self.query.bias",
                        "layer.0.query.bias",
                    ),
                    (
                        "encoder.layer.0.output.LayerNorm.bias",
                        "layer.0.output_norm.beta",
                    ),
                    (
                        "encoder.layer.0.attention.output.dense.weight",
                        "layer.0.attention_output.weight",
                    ),
                    ("pooler.dense.weight", "pooler.weight"),
                ],
            ),
        ];
        for (names, pairs) in cases {
            for (file, model) in pairs {
                assert_eq!(names.in_file(model), *file);
            }
        }
    }

    /// A causal mask is called `attn.bias`; the bias of a layer is none.
    #[test]
    fn extras_are_told_from_parameters() {
        assert!(GPT2.is_extra("h.0.attn.bias"));
        assert!(!GPT2.is_extra("h.0.attn.c_attn.bias"));
        assert!(BERT.is_extra("cls.seq_relationship.weight"));
        assert!(!BERT.is_extra("encoder.layer.0.output.dense.bias"));
    }
}
