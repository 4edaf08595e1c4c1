use std::io::{BufReader, Cursor};

use super::*;

const MIXED: &str = "naïve 日本語\r\n\r\n  indented 🦀🦀🦀🦀 line\nüüüüüüüüüüüüüüüüüüüüüüüüüü\n\na b\tc  d\u{3000}e";

/// The pieces, for a reader that has `buffer` bytes at once.
fn pieces(
    text: &[u8],
    buffer: usize,
    limit: usize,
    invalid: InvalidUtf8,
) -> Result<(Vec<String>, u64), TextError> {
    let reader = BufReader::with_capacity(buffer, Cursor::new(text));
    let mut chunks = Chunks::new(reader, limit, invalid);
    let mut pieces: Vec<String> = Vec::new();
    while let Some((offset, piece)) = chunks.next()? {
        assert_eq!(offset as usize, pieces.concat().len());
        pieces.push(piece.to_owned());
    }
    assert_eq!(chunks.bytes, text.len() as u64);
    Ok((pieces, chunks.replaced))
}

#[test]
fn pieces_make_the_text_again_and_stay_below_the_limit() {
    for limit in 4..=20 {
        for buffer in [1, 2, 3, 5, 8, 1000] {
            let (pieces, replaced) =
                pieces(MIXED.as_bytes(), buffer, limit, InvalidUtf8::Refuse).unwrap();
            assert_eq!(pieces.concat(), MIXED, "limit {limit}, buffer {buffer}");
            assert_eq!(replaced, 0);
            assert!(
                pieces
                    .iter()
                    .all(|piece| (1..=limit).contains(&piece.len()))
            );
        }
    }
}

#[test]
fn pieces_end_where_tokens_do() {
    let cuts = |text: &str, limit| {
        pieces(text.as_bytes(), 64, limit, InvalidUtf8::Refuse)
            .unwrap()
            .0
    };
    assert_eq!(cuts("one\ntwo\nthree\n", 9), ["one\ntwo\n", "three\n"]);
    assert_eq!(cuts("one\n  two\nthree", 11), ["one\n  two\n", "three"]);
    assert_eq!(cuts("ab\r\n  cdefgh", 8), ["ab\r\n", "  cdefgh"]);
    assert_eq!(cuts("one two  three", 10), ["one two", "  three"]);
    assert_eq!(cuts("abcdéf", 5), ["abcd", "éf"]);
    assert_eq!(cuts("short", 5), ["short"]);
    assert!(cuts("", 5).is_empty());
}

#[test]
fn invalid_bytes_are_refused_with_their_offset() {
    let bad: [(&[u8], u64); 5] = [
        (b"ab\xFFcd", 2),
        (b"\x80", 0),
        (b"abcdefgh\xE2\x82", 8),
        (b"abc\xE2\x82x", 3),
        (b"ab\xED\xA0\x80", 2),
    ];
    for (text, at) in bad {
        for buffer in [1, 2, 100] {
            match pieces(text, buffer, 4, InvalidUtf8::Refuse) {
                Err(TextError::InvalidUtf8 { offset }) => assert_eq!(offset, at),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn replacing_gives_what_the_standard_library_gives() {
    let text = b"a\xFFb\xE2\x82\xE2\x82\xAC\xF0\x9F\xA6\x80\xC0\xAF\xED\xA0\x80 \xF0\x9F\xA6";
    let lossy = String::from_utf8_lossy(text);
    for limit in 4..=20 {
        for buffer in [1, 2, 3, 7, 100] {
            let (pieces, replaced) = pieces(text, buffer, limit, InvalidUtf8::Replace).unwrap();
            assert_eq!(pieces.concat(), lossy);
            assert_eq!(replaced as usize, lossy.matches('\u{FFFD}').count());
        }
    }
}

/// Gives `left` bytes of one line, holding none of them.
struct LongLine {
    left: usize,
    buffer: [u8; 4096],
}

impl std::io::Read for LongLine {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        unreachable!("only fill_buf is used")
    }
}

impl BufRead for LongLine {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        Ok(&self.buffer[..self.left.min(4096)])
    }

    fn consume(&mut self, amount: usize) {
        self.left -= amount;
    }
}

#[test]
fn a_line_of_any_length_is_held_in_bounded_memory() {
    let left = 64 << 20;
    let line = LongLine {
        left,
        buffer: [b'x'; 4096],
    };
    let mut chunks = Chunks::new(line, 1 << 16, InvalidUtf8::Refuse);
    let mut total = 0;
    while let Some((_, piece)) = chunks.next().unwrap() {
        total += piece.len();
        assert!(chunks.text.capacity() <= 1 << 18);
    }
    assert_eq!(total, left);
}
