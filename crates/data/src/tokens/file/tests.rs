use std::fs;

use super::*;
use crate::tokens::TokenWriter;

fn id() -> TokenizerId {
    TokenizerId {
        name: "test".into(),
        fingerprint: 9,
    }
}

fn written(path: &Path, vocab: u64, tokens: &[u32]) -> TokenFile {
    let mut writer = TokenWriter::create(path, vocab, id()).unwrap();
    writer.push(tokens).unwrap();
    writer.finish(77).unwrap();
    TokenFile::open(path).unwrap()
}

#[test]
fn both_widths_come_back_as_written() {
    let folder = tempfile::tempdir().unwrap();
    for (vocab, width) in [(65_536u64, 2), (65_537, 4), (1 << 32, 4)] {
        let path = folder.path().join(format!("{vocab}.tok"));
        let tokens = [0, 1, 258, (vocab - 1) as u32, 7];
        let file = written(&path, vocab, &tokens);
        assert_eq!(fs::metadata(&path).unwrap().len(), 64 + 5 * width);
        assert_eq!(
            (file.len(), file.vocab(), file.source_bytes()),
            (5, vocab, 77)
        );
        assert_eq!(file.tokenizer(), &id());
        assert_eq!(file.read(0, 5).unwrap(), tokens.map(i64::from));
        assert_eq!(file.read(2, 2).unwrap(), [258, vocab as i64 - 1]);
        assert!(file.read(5, 0).unwrap().is_empty());
    }
}

#[test]
fn tokens_are_little_endian() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    written(&path, 1000, &[0x0102]);
    assert_eq!(fs::read(path).unwrap()[64..], [2, 1]);
}

#[test]
fn reading_beyond_the_end_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(&folder.path().join("a.tok"), 10, &[1, 2, 3]);
    for (start, len) in [
        (0, 4),
        (3, 1),
        (4, 0),
        (u64::MAX, 1),
        (0, usize::MAX),
        (u64::MAX, usize::MAX),
    ] {
        let message = file.read(start, len).unwrap_err().to_string();
        assert!(message.ends_with("it has 3"), "{message}");
    }
}

#[test]
fn a_token_beyond_the_vocabulary_is_named_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    written(&path, 10, &[1, 2, 3, 4]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[64 + 2 * 2] = 10;
    fs::write(&path, bytes).unwrap();
    let file = TokenFile::open(&path).unwrap();
    assert_eq!(file.read(0, 2).unwrap(), [1, 2]);
    let message = file.read(1, 3).unwrap_err().to_string();
    assert!(message.starts_with("token 2 of "), "{message}");
    assert!(
        message.contains("is 10, but its vocabulary is 10"),
        "{message}"
    );
}

#[test]
fn what_is_not_a_whole_token_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tok");
    let refusal = |path: &Path| TokenFile::open(path).unwrap_err();
    assert!(matches!(refusal(&path), TextError::Read { .. }));
    assert!(matches!(refusal(folder.path()), TextError::Read { .. }));
    written(&path, 10, &[1, 2, 3, 4]);
    let whole = fs::read(&path).unwrap();
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        match refusal(&path) {
            TextError::NotTokens { .. } => assert!(len < 8),
            TextError::Length { got, expected, .. } => {
                assert_eq!(
                    (got, expected),
                    (len as u64, if len < 64 { 64 } else { 72 })
                );
            }
            other => panic!("{other}"),
        }
    }
    fs::write(&path, [whole.as_slice(), &[0]].concat()).unwrap();
    assert!(matches!(refusal(&path), TextError::Length { got: 73, .. }));
    fs::write(
        &path,
        "just some text, longer than a header would be, but no tokens at all",
    )
    .unwrap();
    assert!(matches!(refusal(&path), TextError::NotTokens { .. }));
}

/// Resident bytes of the mapping of `path`: no other test that runs meanwhile counts.
#[cfg(target_os = "linux")]
fn resident_kib(path: &Path) -> u64 {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let name = path.to_str().unwrap();
    let mapping = maps.split_once(name).unwrap().1;
    let rss = mapping
        .lines()
        .find_map(|line| line.strip_prefix("Rss:"))
        .unwrap();
    rss.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_file_opens_at_once_and_takes_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse.tok");
    let header = Header {
        width: 2,
        vocab: 50_257,
        tokens: 1 << 29,
        source_bytes: 1,
        tokenizer: id(),
    };
    fs::write(&path, header.to_bytes()).unwrap();
    let sparse = File::options().write(true).open(&path).unwrap();
    sparse.set_len(header.file_bytes().unwrap()).unwrap();

    // The best of a few: other processes may take the processor away.
    let fastest = (0..5).map(|_| {
        let clock = std::time::Instant::now();
        let file = TokenFile::open(&path).unwrap();
        (clock.elapsed(), file.len())
    });
    let (elapsed, tokens) = fastest.min().unwrap();
    assert_eq!(tokens, 1 << 29);
    assert!(elapsed.as_millis() < 50, "{elapsed:?}");

    let file = TokenFile::open(&path).unwrap();
    assert_eq!(resident_kib(&path), 0);
    assert_eq!(file.read((1 << 29) - 3, 3).unwrap(), [0, 0, 0]);
    assert!(resident_kib(&path) < 4096);
}
