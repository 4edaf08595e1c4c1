//! Numbers with their units.

use leanburn_memory::Bytes;

const BYTES: [(&str, f64); 7] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1048576.0),
    ("GiB", 1073741824.0),
    ("TiB", 1099511627776.0),
    ("PiB", 1125899906842624.0),
    ("EiB", 1152921504606846976.0),
];
/// From how many seconds on a unit is used, and how many it has.
const SECONDS: [(&str, f64, f64); 6] = [
    ("ns", 0.0, 1e-9),
    ("µs", 1e-6, 1e-6),
    ("ms", 1e-3, 1e-3),
    ("s", 1.0, 1.0),
    ("min", 300.0, 60.0),
    ("h", 10_800.0, 3600.0),
];

/// What is counted on an axis.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A number without a unit, such as a loss.
    #[default]
    Number,
    /// Bytes, shown in binary units.
    Bytes,
    /// Seconds, shown from nanoseconds to hours.
    Seconds,
}

impl Unit {
    /// The name and size of the unit for numbers of up to `most`; a plain number has no name.
    pub(super) fn of(self, most: f64) -> (&'static str, f64) {
        match self {
            Unit::Number => ("", 1.0),
            Unit::Bytes => *BYTES
                .iter()
                .rfind(|(_, size)| most >= *size)
                .unwrap_or(&BYTES[0]),
            // Nothing lasts no time at all: 0 is in seconds.
            Unit::Seconds if most <= 0.0 => ("s", 1.0),
            Unit::Seconds => SECONDS
                .iter()
                .rfind(|(_, from, _)| most >= *from)
                .map_or(("s", 1.0), |(name, _, size)| (*name, *size)),
        }
    }

    /// The number with its unit: `6.81 GiB`, `12.5 ms`, `0.4821`.
    pub(super) fn value(self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        match self {
            Unit::Bytes => format!("{sign}{}", Bytes(value.abs() as u64)),
            _ => {
                let (name, size) = self.of(value.abs());
                let number = significant(value / size);
                format!("{number} {name}").trim_end().to_owned()
            }
        }
    }

    /// The same as short as it is exact enough for a tick: `10 ms`, `512 MiB`, `0.001`.
    pub(super) fn tick(self, value: f64) -> String {
        let (name, size) = self.of(value.abs());
        let number = significant(value / size);
        format!("{number} {name}").trim_end().to_owned()
    }
}

/// Four digits of a number, less where the last ones are 0.
fn significant(value: f64) -> String {
    let power = exponent(value);
    if value != 0.0 && !(-4..6).contains(&power) {
        return short(&format!("{value:.3e}"));
    }
    let decimals = (3 - power).clamp(0, 8) as usize;
    short(&format!("{value:.decimals$}"))
}

/// Numbers that differ by `step`, of up to `most`, all written with the same decimals.
pub(super) fn plain(value: f64, step: f64, most: f64) -> String {
    let (power, last) = (exponent(most), exponent(step));
    if most != 0.0 && !(-4..6).contains(&power) {
        let decimals = (exponent(value) - last).clamp(0, 6) as usize;
        return short(&format!("{value:.decimals$e}"));
    }
    let decimals = (-last).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    match text.trim_start_matches(['-', '0', '.']).is_empty() {
        true => "0".to_owned(),
        false => text,
    }
}

/// The power of ten of the first digit; what is nearly a power of ten is one.
fn exponent(value: f64) -> i32 {
    match value.abs() {
        value if value > 0.0 && value.is_finite() => (value.log10() + 1e-9).floor() as i32,
        _ => 0,
    }
}

/// Without zeros at the end of the decimals.
fn short(number: &str) -> String {
    let (digits, power) = match number.split_once('e') {
        Some((digits, power)) => (digits, format!("e{power}")),
        None => (number, String::new()),
    };
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => digits,
    };
    match digits {
        "-0" | "0" => "0".to_owned(),
        _ => format!("{digits}{power}"),
    }
}
