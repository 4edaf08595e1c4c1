use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::tokens::TokenFile;

const TEXT: &[u8] = b"one\r\n\xFF two\n";

fn gz(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn built(folder: &Path, name: &str, content: &[u8]) -> Result<Vec<i64>, TextError> {
    let (text, out) = (folder.join(name), folder.join("out.tok"));
    fs::write(&text, content).unwrap();
    let report = build(text, &Tokenizer::Bytes, InvalidUtf8::Refuse, &out)?;
    let file = TokenFile::open(out)?;
    assert_eq!(
        (report.tokens, report.bytes),
        (file.len(), file.source_bytes())
    );
    assert_eq!(*file.tokenizer(), Tokenizer::Bytes.id());
    file.read(0, report.tokens as usize)
}

#[test]
fn text_and_gzipped_text_give_the_same_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Vec<i64> = TEXT.iter().copied().map(i64::from).collect();
    let two = [gz(&TEXT[..4]), gz(&TEXT[4..])].concat();
    for (name, content) in [
        ("a.txt", TEXT.to_vec()),
        ("a.txt.gz", gz(TEXT)),
        ("a.GZ", two),
        ("zipped", gz(TEXT)),
    ] {
        assert_eq!(
            built(folder.path(), name, &content).unwrap(),
            expected,
            "{name}"
        );
    }
    assert!(built(folder.path(), "empty", b"").unwrap().is_empty());
}

#[test]
fn a_damaged_text_is_named_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let long: Vec<u8> = (0..100_000u32)
        .map(|at| at.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let whole = gz(&long);
    for (name, content) in [("cut.gz", &whole[..whole.len() / 2]), ("plain.gz", TEXT)] {
        let message = built(folder.path(), name, content).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert!(!folder.path().join("out.tok").exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn the_text_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.txt");
    fs::write(&text, TEXT).unwrap();
    let again: PathBuf = folder.path().join(".").join("a.txt");
    let error = build(&text, &Tokenizer::Bytes, InvalidUtf8::Refuse, again).unwrap_err();
    assert!(error.to_string().contains("it is the text itself"));
    assert_eq!(fs::read(text).unwrap(), TEXT);
}

#[test]
fn a_missing_text_or_a_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for text in [folder.path().join("gone"), folder.path().to_owned()] {
        let error = build(
            text,
            &Tokenizer::Bytes,
            InvalidUtf8::Refuse,
            folder.path().join("out"),
        );
        assert!(matches!(error, Err(TextError::Read { .. })));
    }
}
