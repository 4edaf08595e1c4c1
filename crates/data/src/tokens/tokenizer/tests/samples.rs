/// Words and signs, white space dropped, everything unknown `?`; the added token leaves a gap between the ids.
pub const WORDS: &str = r#"{
  "version": "1.0",
  "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
  "padding": {"strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "?"},
  "added_tokens": [{"id": 9, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}],
  "normalizer": null,
  "pre_tokenizer": {"type": "Whitespace"},
  "post_processor": null,
  "decoder": null,
  "model": {"type": "WordLevel", "vocab": {"?": 0, "one": 1, "two": 2, "three": 3, "<end>": 9}, "unk_token": "?"}
}"#;

/// GPT-2's scheme: all 256 bytes, and a few merges.
pub fn byte_bpe() -> String {
    // The table that the scheme gives printable names to bytes with.
    let printable = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let (shown, hidden): (Vec<u32>, Vec<u32>) = (0..256).partition(printable);
    let mut names: Vec<char> = shown
        .iter()
        .filter_map(|&byte| char::from_u32(byte))
        .collect();
    names.extend((0..hidden.len()).filter_map(|at| char::from_u32(256 + at as u32)));
    let mut tokens: Vec<String> = names.iter().map(char::to_string).collect();
    tokens.extend(["th", "the", "Ġthe", "ĊĊ", "Ã¤"].map(String::from));
    let quoted = |name: &String| name.replace('\\', "\\\\").replace('"', "\\\"");
    let entry = |(id, name): (usize, &String)| format!("\"{}\": {id}", quoted(name));
    let vocab: Vec<String> = tokens.iter().enumerate().map(entry).collect();
    format!(
        r#"{{"version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
        "post_processor": null,
        "decoder": {{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}},
        "model": {{"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
          "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
          "vocab": {{{}}}, "merges": ["t h", "th e", "Ġ the", "Ċ Ċ", "Ã ¤"]}}}}"#,
        vocab.join(", ")
    )
}
