//! The memory table as aligned text.

use std::fmt;

use crate::{Bytes, Difference, Measurement};

/// What stands where nobody says a number.
pub const NOT_REPORTED: &str = "not reported";

/// The memory table of one step: as predicted, as measured with the signed difference, and beside the same
/// step in fp32; whatever of these there is.
///
/// `share` is the part of the peak (the measured one, where there is one); `difference` is predicted less
/// measured; `ratio` is over fp32. Sizes are in binary units; what is not known says `not reported`.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// What was said before.
    pub predicted: Option<&'a Measurement>,
    /// What it was.
    pub measured: Option<&'a Measurement>,
    /// The same in fp32.
    pub fp32: Option<&'a Measurement>,
}

type Read<'a> = &'a dyn Fn(&Measurement) -> Option<Bytes>;

impl Table<'_> {
    fn main(&self) -> Option<&Measurement> {
        self.measured.or(self.predicted)
    }

    fn head(&self) -> Vec<String> {
        let columns = [
            ("memory", true),
            ("predicted at peak", self.predicted.is_some()),
            ("measured at peak", self.measured.is_some()),
            (
                "difference",
                self.predicted.is_some() && self.measured.is_some(),
            ),
            ("share", true),
            ("fp32", self.fp32.is_some()),
            ("ratio", self.fp32.is_some()),
        ];
        let there = columns.into_iter().filter(|(_, there)| *there);
        there.map(|(name, _)| name.to_owned()).collect()
    }

    fn line(&self, label: &str, read: Read, of_peak: bool) -> Vec<String> {
        let [predicted, measured, fp32] =
            [self.predicted, self.measured, self.fp32].map(|side| side.and_then(read));
        let mut line = vec![label.to_owned()];
        line.extend(self.predicted.map(|_| size(predicted)));
        line.extend(self.measured.map(|_| size(measured)));
        if self.predicted.is_some() && self.measured.is_some() {
            line.push(difference(predicted, measured));
        }
        let main = if self.measured.is_some() {
            measured
        } else {
            predicted
        };
        let whole = self.main().map(|main| main.peak).filter(|_| of_peak);
        let share = ratio(main, whole).map(|share| format!("{:.1} %", 100.0 * share));
        line.push(share.unwrap_or_default());
        if self.fp32.is_some() {
            let ratio = ratio(main, fp32).map(|ratio| format!("{ratio:.2}x"));
            line.extend([size(fp32), ratio.unwrap_or_default()]);
        }
        line
    }

    /// The peaks of the sides need not fall in the same phase.
    fn peak_label(&self) -> String {
        let Some(main) = self.main() else {
            return "peak".into();
        };
        let mut label = format!("peak ({}", main.phase);
        let others = [("predicted", self.predicted), ("fp32", self.fp32)];
        for (name, side) in others {
            if let Some(side) = side.filter(|side| side.phase != main.phase) {
                label += &format!(", {name}: {}", side.phase);
            }
        }
        label + ")"
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let mut lines = vec![self.head()];
        for row in crate::Row::ALL {
            // These two come on top of the peak, so they have no share of it.
            let of_peak = !matches!(row, crate::Row::Allocator | crate::Row::Framework);
            lines.push(self.line(row.name(), &|side| side.rows.get(row), of_peak));
        }
        lines.push(self.line(&self.peak_label(), &|side| Some(side.peak), true));
        // What is kept after the forward is no part of the peak, so it has no share of it.
        lines.push(self.line(
            "kept after the forward",
            &|side| side.kept_after_forward,
            false,
        ));
        lines
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&align(&self.lines()))
    }
}

/// Lines of cells as text: the first column to the left, the others to the right, two spaces between.
pub fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let length =
        |line: &Vec<String>, column: usize| line.get(column).map_or(0, |cell| cell.chars().count());
    let widest = |column| lines.iter().map(|line| length(line, column)).max();
    let widths: Vec<usize> = (0..columns).filter_map(widest).collect();
    let mut text = String::new();
    for line in lines {
        let mut cells = line.iter().zip(&widths);
        let mut of_line = String::new();
        if let Some((label, width)) = cells.next() {
            of_line = format!("{label:<width$}");
        }
        for (cell, width) in cells {
            of_line += &format!("  {cell:>width$}");
        }
        text += of_line.trim_end();
        text.push('\n');
    }
    text
}

/// The memory table as text, one row a line, ending in a newline.
pub fn render(measured: &Measurement, fp32: Option<&Measurement>) -> String {
    let table = Table {
        predicted: None,
        measured: Some(measured),
        fp32,
    };
    table.to_string()
}

/// Bytes in a cell.
pub fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| NOT_REPORTED.to_owned(), |bytes| bytes.to_string())
}

/// In percent of what was measured; in bytes where nothing was.
fn difference(predicted: Option<Bytes>, measured: Option<Bytes>) -> String {
    let difference = Difference {
        predicted,
        measured,
    };
    match (difference.fraction(), difference.bytes()) {
        (Some(fraction), _) => format!("{:+.1} %", 100.0 * fraction),
        (None, Some(bytes)) if bytes != 0 => format!("+{}", Bytes(bytes.unsigned_abs())),
        _ => String::new(),
    }
}

/// `part / whole`, `None` where either is not known or the whole is 0.
fn ratio(part: Option<Bytes>, whole: Option<Bytes>) -> Option<f64> {
    let whole = whole.filter(|whole| whole.0 > 0)?;
    Some(part?.0 as f64 / whole.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ledger, Phase, Row};

    const MIB: u64 = 1 << 20;

    fn step(phase: Phase, activations: u64) -> Measurement {
        Measurement {
            phase,
            peak: Bytes((100 + activations) * MIB),
            kept_after_forward: Some(Bytes(activations * MIB)),
            rows: Ledger::default()
                .with(Row::Parameters, Bytes(100 * MIB))
                .with(Row::Buffers, Bytes(0))
                .with(Row::Activations, Bytes(activations * MIB)),
        }
    }

    #[test]
    fn one_step() {
        let expected = "\
memory                  measured at peak    share
parameters                     100.0 MiB   25.0 %
buffers                              0 B    0.0 %
inputs                      not reported
activations                    300.0 MiB   75.0 %
gradients                   not reported
optimizer state             not reported
temporaries                 not reported
allocator                   not reported
framework                   not reported
peak (backward)                400.0 MiB  100.0 %
kept after the forward         300.0 MiB
";
        assert_eq!(render(&step(Phase::Backward, 300), None), expected);
    }

    #[test]
    fn beside_fp32() {
        let mut half = step(Phase::Backward, 300);
        half.kept_after_forward = None;
        let expected = "\
memory                          measured at peak    share          fp32  ratio
parameters                             100.0 MiB   25.0 %     100.0 MiB  1.00x
buffers                                      0 B    0.0 %           0 B
inputs                              not reported           not reported
activations                            300.0 MiB   75.0 %     600.0 MiB  0.50x
gradients                           not reported           not reported
optimizer state                     not reported           not reported
temporaries                         not reported           not reported
allocator                           not reported           not reported
framework                           not reported           not reported
peak (backward, fp32: forward)         400.0 MiB  100.0 %     700.0 MiB  0.57x
kept after the forward              not reported              600.0 MiB
";
        assert_eq!(render(&half, Some(&step(Phase::Forward, 600))), expected);
    }

    #[test]
    fn predicted_beside_measured() {
        let (predicted, measured) = (step(Phase::Forward, 270), step(Phase::Backward, 300));
        let table = Table {
            predicted: Some(&predicted),
            measured: Some(&measured),
            fp32: None,
        };
        let text = table.to_string();
        let line = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap();
        let words = |label: &str| {
            let cells = line(label).split("  ").map(str::trim);
            cells
                .filter(|cell| !cell.is_empty())
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            words("activations"),
            ["activations", "270.0 MiB", "300.0 MiB", "-10.0 %", "75.0 %"]
        );
        assert_eq!(words("buffers"), ["buffers", "0 B", "0 B", "0.0 %"]);
        assert!(line("peak").starts_with("peak (backward, predicted: forward)"));

        let alone = Table {
            measured: None,
            ..table
        };
        assert!(alone.to_string().starts_with("memory  "));
        assert_eq!(alone.lines()[4], ["activations", "270.0 MiB", "73.0 %"]);
    }
}
