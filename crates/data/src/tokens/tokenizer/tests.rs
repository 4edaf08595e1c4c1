mod samples;

use std::io::{BufReader, Cursor};

use super::*;
use samples::{WORDS, byte_bpe};

fn json(text: &str) -> JsonTokenizer {
    JsonTokenizer::new("test", text.as_bytes()).unwrap()
}

fn streamed(json: &JsonTokenizer, text: &[u8], piece: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    let reader = BufReader::with_capacity(3, Cursor::new(text));
    let done = encode_text(json, reader, InvalidUtf8::Refuse, piece, |ids| {
        tokens.extend_from_slice(ids);
        Ok(())
    });
    let (len, bytes) = (tokens.len() as u64, text.len() as u64);
    assert_eq!(
        done.unwrap(),
        Encoded {
            tokens: len,
            bytes,
            replaced: 0
        }
    );
    tokens
}

#[test]
fn any_bytes_survive_the_byte_tokenizer() {
    let mut text: Vec<u8> = (0..=255).collect();
    text.extend(b"\r\nCRLF\r\n\xFF\xFE\xC0");
    let text = text.repeat(100);
    let mut tokens = Vec::new();
    let reader = BufReader::new(Cursor::new(&text));
    let done = Tokenizer::Bytes.encode_file(reader, InvalidUtf8::Refuse, |ids| {
        tokens.extend_from_slice(ids);
        Ok(())
    });
    let len = text.len() as u64;
    assert_eq!(
        done.unwrap(),
        Encoded {
            tokens: len,
            bytes: len,
            replaced: 0
        }
    );
    assert_eq!(tokens, Tokenizer::Bytes.encode(&text).unwrap());
    assert_eq!(Tokenizer::Bytes.decode(&tokens).unwrap(), text);
    assert!(matches!(
        Tokenizer::Bytes.decode(&[256]),
        Err(TextError::Undecodable {
            token: 256,
            vocab: 256
        })
    ));
}

#[test]
fn a_json_tokenizer_ignores_truncation_and_padding_and_counts_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    fs::write(&path, WORDS).unwrap();
    let words = Tokenizer::open(path).unwrap();
    assert_eq!(words.vocab(), 10);
    assert_eq!(words.id().name, "WordLevel");
    assert_eq!(
        words.encode(b"one two\r\nthree four<end>").unwrap(),
        [1, 2, 3, 0, 9]
    );
    assert_eq!(words.decode(&[1, 9, 3]).unwrap(), b"one <end> three");
    for token in [4, 10, u32::MAX] {
        assert!(matches!(
            words.decode(&[1, token]),
            Err(TextError::Undecodable { .. })
        ));
    }
    assert!(matches!(
        words.encode(b"one\xFF"),
        Err(TextError::InvalidUtf8 { offset: 3 })
    ));
}

#[test]
fn bpe_in_pieces_decodes_to_the_text() {
    let bpe = json(&byte_bpe());
    assert_eq!((bpe.vocab(), bpe.id().name.as_str()), (261, "BPE"));
    let text = "the naïve 日本語 ä\r\n\r\n  the the 🦀🦀🦀\nääääääääääääää\n\nthe end".repeat(3);
    for piece in 4..=20 {
        let tokens = streamed(&bpe, text.as_bytes(), piece);
        assert_eq!(bpe.decode(&tokens).unwrap(), text, "pieces of {piece}");
    }
}

#[test]
fn pieces_that_end_at_lines_do_not_change_the_tokens() {
    let bpe = json(&byte_bpe());
    let text = "the other\n\n  the one\r\nthe\n\n\nthe last the\n".repeat(20);
    let whole = bpe.encode(&text, 0).unwrap();
    assert!(whole.contains(&258) && whole.contains(&259));
    for piece in 60..200 {
        assert_eq!(
            streamed(&bpe, text.as_bytes(), piece),
            whole,
            "pieces of {piece}"
        );
    }
}

#[test]
fn replaced_bytes_are_counted() {
    let bpe = Tokenizer::Json(Box::new(json(&byte_bpe())));
    let text = b"the\xFFthe\xE2\x82";
    let mut tokens = Vec::new();
    let mut encode = |invalid| {
        bpe.encode_file(text.as_slice(), invalid, |ids| {
            tokens.extend_from_slice(ids);
            Ok(())
        })
    };
    assert!(matches!(
        encode(InvalidUtf8::default()),
        Err(TextError::InvalidUtf8 { offset: 3 })
    ));
    let done = encode(InvalidUtf8::Replace).unwrap();
    assert_eq!(
        (done.bytes, done.replaced, done.tokens),
        (9, 2, tokens.len() as u64)
    );
    assert_eq!(
        bpe.decode(&tokens).unwrap(),
        "the\u{FFFD}the\u{FFFD}".as_bytes()
    );
}

#[test]
fn a_file_that_is_no_tokenizer_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    let message = |path: &Path| {
        let message = Tokenizer::open(path).unwrap_err().to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("tokenizer.json"), "{message}");
        message
    };
    assert!(message(&path).starts_with("cannot read "));
    let no_tokens = r#"{"version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {}, "unk_token": "?"}}"#;
    for text in [
        "",
        "{}",
        "[1, 2",
        "\u{0}",
        &WORDS[..300],
        "{\n\"model\":\n3}",
        no_tokens,
    ] {
        fs::write(&path, text).unwrap();
        assert!(
            message(&path).starts_with("cannot use tokenizer "),
            "{text}"
        );
    }
}

#[test]
fn a_tokenizer_that_fails_says_where() {
    let broken = json(&WORDS.replace(r#""unk_token": "?""#, r#""unk_token": "gone""#));
    let text = "one two\n".repeat(5) + "four\n";
    let error = encode_text(
        &broken,
        text.as_bytes(),
        InvalidUtf8::Refuse,
        10,
        |_| Ok(()),
    );
    match error {
        Err(TextError::Tokenizing { offset: 40, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failing_reader_or_sink_ends_the_encoding() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("pulled out"))
        }
    }
    for tokenizer in [Tokenizer::Bytes, Tokenizer::Json(Box::new(json(WORDS)))] {
        let reader = BufReader::new(std::io::Read::chain(b"one ".as_slice(), Broken));
        let error = tokenizer
            .encode_file(reader, InvalidUtf8::Refuse, |_| Ok(()))
            .unwrap_err();
        assert!(
            matches!(error, TextError::Text { offset: 4, .. }),
            "{error}"
        );
        let full = |_: &[u32]| Err(TextError::Zero { setting: "room" });
        let error = tokenizer.encode_file(b"one".as_slice(), InvalidUtf8::Refuse, full);
        assert!(matches!(error, Err(TextError::Zero { .. })));
    }
}
