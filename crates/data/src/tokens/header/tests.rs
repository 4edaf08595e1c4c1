use super::*;

fn header() -> Header {
    Header {
        width: 2,
        vocab: 300,
        tokens: 5,
        source_bytes: 17,
        tokenizer: TokenizerId {
            name: "BPE".into(),
            fingerprint: 0x0123_4567_89AB_CDEF,
        },
    }
}

fn parse(bytes: &[u8; HEADER], file_bytes: u64) -> Result<Header, TextError> {
    Header::parse(bytes, file_bytes, Path::new("a.tok"))
}

/// The message for a header with `field` written at `at`, its checksum made right again.
fn patched(at: usize, field: &[u8]) -> String {
    let mut bytes = header().to_bytes();
    bytes[at..at + field.len()].copy_from_slice(field);
    seal(&mut bytes);
    parse(&bytes, 74).unwrap_err().to_string()
}

#[test]
fn a_header_survives_the_round_trip() {
    assert_eq!(parse(&header().to_bytes(), 74).unwrap(), header());
    assert_eq!(header().tokenizer.to_string(), "BPE 0123456789abcdef");
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    for at in 0..HEADER {
        for bit in 0..8 {
            let mut bytes = header().to_bytes();
            bytes[at] ^= 1 << bit;
            assert!(parse(&bytes, 74).is_err(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn every_field_is_checked_even_if_the_checksum_is_right() {
    assert!(patched(0, b"PNG").contains("not a token file"));
    assert!(patched(8, &[2]).contains("version 2, not 1"));
    assert!(patched(12, &[3]).contains("tokens of 3 bytes"));
    assert!(patched(16, &[0, 0]).contains("vocabulary of 0"));
    assert!(patched(16, &65_537u64.to_le_bytes()).contains("65537, where tokens of 2 bytes"));
    assert!(patched(24, &6u64.to_le_bytes()).contains("74 bytes instead of 76"));
    assert!(patched(24, &u64::MAX.to_le_bytes()).contains("18446744073709551615 tokens"));
}

#[test]
fn a_file_that_is_cut_short_or_too_long_names_both_lengths() {
    for got in [10, 63, 64, 73, 75, 1 << 40] {
        let expected = if got < 64 { 64 } else { 74 };
        let message = parse(&header().to_bytes(), got).unwrap_err().to_string();
        assert!(message.contains(&format!("{got} bytes instead of {expected}")));
        assert_eq!(message.lines().count(), 1);
    }
}

#[test]
fn a_long_name_is_cut_at_a_character() {
    let mut long = header();
    long.tokenizer.name = "elevenbytesé".into();
    let read = parse(&long.to_bytes(), 74).unwrap();
    assert_eq!(read.tokenizer.name, "elevenbytes");
}

#[test]
fn the_width_follows_the_vocabulary() {
    for (vocab, width) in [(1, 2), (65_536, 2), (65_537, 4), (1 << 32, 4)] {
        assert_eq!(Header::width_of(vocab).unwrap(), width);
    }
    for vocab in [0, (1 << 32) + 1, u64::MAX] {
        assert!(Header::width_of(vocab).is_err());
    }
}
