use std::fs;

use super::*;
use crate::tokens::TokenFile;

fn id() -> TokenizerId {
    TokenizerId {
        name: "test".into(),
        fingerprint: 9,
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn the_final_name_appears_only_with_the_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    let mut writer = TokenWriter::create(&path, 300, id()).unwrap();
    for chunk in (0..100_000).collect::<Vec<u32>>().chunks(777) {
        let tokens: Vec<u32> = chunk.iter().map(|token| token % 300).collect();
        writer.push(&tokens).unwrap();
    }
    assert!(!path.exists());
    let part = &names(folder.path())[0];
    assert!(TokenFile::open(folder.path().join(part)).is_err());
    assert_eq!(writer.finish(5).unwrap(), 100_000);
    assert_eq!(names(folder.path()), ["a.tok"]);
    let read = TokenFile::open(&path).unwrap().read(0, 100_000).unwrap();
    assert!(
        read.iter()
            .enumerate()
            .all(|(at, &token)| token == at as i64 % 300)
    );
}

#[test]
fn an_unfinished_writer_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    TokenWriter::create(&path, 9, id())
        .unwrap()
        .finish(0)
        .unwrap();
    let mut writer = TokenWriter::create(&path, 9, id()).unwrap();
    writer.push(&[1, 2, 3]).unwrap();
    drop(writer);
    assert_eq!(names(folder.path()), ["a.tok"]);
    assert!(TokenFile::open(&path).unwrap().is_empty());
}

#[test]
fn two_writers_of_one_file_do_not_mix() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    let [mut one, mut two] = [1, 2].map(|_| TokenWriter::create(&path, 9, id()).unwrap());
    one.push(&[1, 1]).unwrap();
    two.push(&[2]).unwrap();
    one.finish(0).unwrap();
    two.finish(0).unwrap();
    assert_eq!(TokenFile::open(&path).unwrap().read(0, 1).unwrap(), [2]);
    assert_eq!(names(folder.path()), ["a.tok"]);
}

#[test]
fn a_token_beyond_the_vocabulary_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for vocab in [256, 100_000] {
        let mut writer = TokenWriter::create(folder.path().join("a"), vocab, id()).unwrap();
        writer.push(&[0, vocab as u32 - 1]).unwrap();
        let error = writer.push(&[3, vocab as u32]).unwrap_err();
        assert!(
            matches!(error, TextError::OutOfVocab { position: 3, .. }),
            "{error}"
        );
    }
}

#[test]
fn impossible_places_and_vocabularies_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for path in ["missing/a.tok", ".."] {
        let error = TokenWriter::create(folder.path().join(path), 9, id()).unwrap_err();
        assert!(matches!(error, TextError::Write { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    let error = TokenWriter::create(folder.path().join("a"), 0, id()).unwrap_err();
    assert!(matches!(error, TextError::Vocab { vocab: 0 }));
    fs::create_dir(folder.path().join("a.tok")).unwrap();
    let writer = TokenWriter::create(folder.path().join("a.tok"), 9, id()).unwrap();
    assert!(matches!(writer.finish(0), Err(TextError::Write { .. })));
    assert_eq!(names(folder.path()), ["a.tok"]);
}
