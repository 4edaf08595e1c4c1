use super::Corpus;
use crate::Split;
use crate::tokens::{TextError, TokenWriter, Tokenizer};

#[test]
fn the_jargon_file_is_there() {
    let corpus = Corpus::jargon(0.1).unwrap();
    assert_eq!(corpus.len(Split::Train) + corpus.len(Split::Val), 1_681_817);
    assert_eq!(corpus.len(Split::Val), 168_182);
    assert_eq!((corpus.vocab(), corpus.bytes_per_token()), (256, 1.0));
}

#[test]
fn the_last_tokens_are_validation() {
    let corpus = Corpus::bytes("text", (0..10).collect(), 0.3).unwrap();
    assert_eq!(corpus.read(Split::Train, 5, 2).unwrap(), [5, 6]);
    assert_eq!(corpus.read(Split::Val, 0, 3).unwrap(), [7, 8, 9]);
    let beyond = corpus.read(Split::Train, 6, 2).unwrap_err();
    assert!(matches!(beyond, TextError::Range { tokens: 7, .. }));
}

#[test]
fn a_file_is_a_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.bin");
    let mut writer = TokenWriter::create(&path, 300, Tokenizer::Bytes.id()).unwrap();
    writer.push(&[1, 2, 299, 4]).unwrap();
    writer.finish(12).unwrap();
    let corpus = Corpus::open(&path, 0.5).unwrap();
    assert_eq!(corpus.read(Split::Val, 0, 2).unwrap(), [299, 4]);
    assert_eq!(corpus.bytes_per_token(), 3.0);
}

#[test]
fn fractions_outside_0_to_1_are_refused() {
    for fraction in [-0.1, 1.0, f64::NAN] {
        let error = Corpus::bytes("text", vec![0; 9], fraction).unwrap_err();
        assert!(matches!(error, TextError::Fraction { .. }));
    }
}
