//! How a size is printed and read.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::{Bytes, BytesError};

const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const GIB: usize = 3;

/// One decimal, and two for GiB and up below ten: cards differ by hundredths of those.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut value, mut unit) = (self.0 as f64, 0);
        // Past 1023.95 one decimal would print as 1024.0 of the smaller unit.
        while value >= if unit == 0 { 1024.0 } else { 1023.95 } {
            value /= 1024.0;
            unit += 1;
        }
        let decimals = match unit {
            0 => 0,
            GIB.. if value < 9.995 => 2,
            _ => 1,
        };
        f.pad(&format!("{value:.decimals$} {}", UNITS[unit]))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({self} = {})", self.0)
    }
}

impl FromStr for Bytes {
    type Err = BytesError;

    /// Reads the forms listed at [`Bytes`]; a part of a byte (`0.1GiB`) is dropped.
    fn from_str(text: &str) -> Result<Self, BytesError> {
        let malformed = || BytesError::Malformed {
            text: text.to_owned(),
        };
        let too_large = || BytesError::TooLarge {
            text: text.to_owned(),
        };

        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
        let unit = unit_bytes(unit.trim_start()).ok_or_else(malformed)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        // `1.`, `.5`, `1.2.3` and `1.5` bytes are more likely slips than sizes.
        let dotted = number.contains('.');
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || (dotted && (!digits(fraction) || unit == 1)) {
            return Err(malformed());
        }

        let whole: u128 = whole.parse().map_err(|_| too_large())?;
        let bytes = whole.checked_mul(unit).ok_or_else(too_large)?;
        let bytes = bytes
            .checked_add(part_of(unit, fraction))
            .ok_or_else(too_large)?;
        u64::try_from(bytes).map(Bytes).map_err(|_| too_large())
    }
}

/// Bytes in one of the named unit, or `None` where there is no such unit.
fn unit_bytes(name: &str) -> Option<u128> {
    let name = name.to_ascii_lowercase();
    if name.is_empty() || name == "b" {
        return Some(1);
    }
    let (prefix, rest) = name.split_at_checked(1)?;
    let base: u128 = match rest {
        "ib" => 1024,
        "" | "b" => 1000,
        _ => return None,
    };
    let power = ["k", "m", "g", "t", "p", "e"]
        .iter()
        .position(|known| *known == prefix)?;
    Some(base.pow(power as u32 + 1))
}

/// The decimal fraction 0.`digits` of `unit`, rounded down.
fn part_of(unit: u128, digits: &str) -> u128 {
    // Eighteen digits tell single bytes of an EiB apart, and their product still fits.
    let digits = &digits[..digits.len().min(18)];
    let numerator: u128 = digits.parse().unwrap_or(0);
    numerator * unit / 10u128.pow(digits.len() as u32)
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of bytes, or a size such as \"8GiB\"")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<Bytes, E> {
        Ok(Bytes(bytes))
    }

    fn visit_i64<E: Error>(self, bytes: i64) -> Result<Bytes, E> {
        u64::try_from(bytes)
            .map(Bytes)
            .map_err(|_| E::custom(format!("a size can't be negative, and {bytes} is")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Bytes, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Bytes, BytesError> {
        text.parse()
    }

    #[test]
    fn prints_binary_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            ((1 << 20) - 1, "1.0 MiB"),
            (45_927_628, "43.8 MiB"),
            (7_849_050_112, "7.31 GiB"),
            (10_737_418_239, "10.0 GiB"),
            (u64::MAX, "16.0 EiB"),
            // Trap B31: GiB printed as GB.
            (80_000_000_000, "74.5 GiB"),
            (80 << 30, "80.0 GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(format!("[{:>9}]", Bytes(1536)), "[  1.5 KiB]");
        assert_eq!(format!("{:?}", Bytes(1536)), "Bytes(1.5 KiB = 1536)");
    }

    #[test]
    fn parses_every_form() {
        for (text, bytes) in [
            ("8GiB", 8 << 30),
            ("24GB", 24_000_000_000),
            ("24G", 24_000_000_000),
            ("512M", 512_000_000),
            ("512MB", 512_000_000),
            ("512MiB", 512 << 20),
            ("64 kib", 64 << 10),
            ("1.5GiB", 3 << 29),
            ("0.1GiB", 107_374_182),
            (" 1.5  gIb ", 3 << 29),
            ("1024", 1024),
            ("1024 b", 1024),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn what_is_printed_parses_back() {
        for bytes in [0, 512, 1536, 3 << 29, 80 << 30] {
            assert_eq!(parse(&Bytes(bytes).to_string()), Ok(Bytes(bytes)));
        }
    }

    #[test]
    fn rejects_slips_by_name() {
        for text in [
            "", " ", "GiB", "-1", "+1", "1e9", "1.5", "1.", ".5GiB", "1.2.3GB", "8Gi", "8GiBs",
            "8 XB", "1 024", "8G iB", "8é", "0x10", "1_000", "8BiB", "８GiB", "NaN",
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(
                error,
                BytesError::Malformed {
                    text: text.to_owned()
                }
            );
        }
        let message = parse("8Gi").unwrap_err().to_string();
        assert!(
            message.starts_with("`8Gi` is not a size: write 8GiB"),
            "{message}"
        );
    }

    #[test]
    fn overflow_is_an_error() {
        let long = "9".repeat(60);
        for text in ["18446744073709551616", "16EiB", "18.5EB", long.as_str()] {
            assert_eq!(
                parse(text),
                Err(BytesError::TooLarge {
                    text: text.to_owned()
                })
            );
        }
    }

    #[test]
    fn serde_takes_integers_and_texts() {
        let read = |json: &str| serde_json::from_str::<Bytes>(json);
        assert_eq!(serde_json::to_string(&Bytes(1536)).unwrap(), "1536");
        assert_eq!(read("1536").unwrap(), Bytes(1536));
        assert_eq!(read("\"8GiB\"").unwrap(), Bytes(8 << 30));
        assert!(
            read("-1")
                .unwrap_err()
                .to_string()
                .contains("can't be negative")
        );
        assert!(
            read("\"8 apples\"")
                .unwrap_err()
                .to_string()
                .contains("`8 apples`")
        );
        assert!(read("1.5").is_err());
    }
}
