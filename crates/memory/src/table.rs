//! The memory table as aligned text.

use std::fmt;

use crate::{Bytes, Measurement};

const NOT_REPORTED: &str = "not reported";

/// The memory table of one step, beside the same step in fp32 where that was run too.
///
/// `share` is the part of the measured peak; `ratio` is measured over fp32. Sizes are in binary
/// units; what is not known says `not reported`.
pub struct Table {
    lines: Vec<Vec<String>>,
}

impl Table {
    /// The table of `measured`, with a column for `fp32` where given.
    pub fn new(measured: &Measurement, fp32: Option<&Measurement>) -> Self {
        let mut table = Table { lines: Vec::new() };
        let mut head = vec!["memory", "measured at peak", "share"];
        if fp32.is_some() {
            head.extend(["fp32", "ratio"]);
        }
        table
            .lines
            .push(head.into_iter().map(str::to_owned).collect());

        for (row, bytes) in measured.rows.iter() {
            let fp32 = fp32.map(|fp32| fp32.rows.get(row));
            table.push(row.name(), bytes, Some(measured.peak), fp32);
        }
        let label = match fp32 {
            // The two peaks need not fall in the same phase.
            Some(fp32) if fp32.phase != measured.phase => {
                format!("peak ({}, fp32: {})", measured.phase, fp32.phase)
            }
            _ => format!("peak ({})", measured.phase),
        };
        let fp32_peak = fp32.map(|fp32| Some(fp32.peak));
        table.push(&label, Some(measured.peak), Some(measured.peak), fp32_peak);
        // What is kept after the forward is no part of the peak, so it has no share of it.
        let fp32_kept = fp32.map(|fp32| fp32.kept_after_forward);
        table.push(
            "kept after the forward",
            measured.kept_after_forward,
            None,
            fp32_kept,
        );
        table
    }

    /// The text of the table, the same as [`render`].
    pub fn render(measured: &Measurement, fp32: Option<&Measurement>) -> String {
        render(measured, fp32)
    }

    /// Adds a line; `fp32` is `None` where there is no such column.
    fn push(
        &mut self,
        label: &str,
        bytes: Option<Bytes>,
        whole: Option<Bytes>,
        fp32: Option<Option<Bytes>>,
    ) {
        let share = ratio(bytes, whole).map(|share| format!("{:.1} %", 100.0 * share));
        let mut line = vec![label.to_owned(), size(bytes), share.unwrap_or_default()];
        if let Some(fp32) = fp32 {
            let ratio = ratio(bytes, fp32).map(|ratio| format!("{ratio:.2}x"));
            line.extend([size(fp32), ratio.unwrap_or_default()]);
        }
        self.lines.push(line);
    }
}

impl fmt::Display for Table {
    /// Labels to the left, numbers to the right, two spaces between.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.lines.first().map_or(0, Vec::len);
        let widest = |column: usize| self.lines.iter().map(|line| line[column].len()).max();
        let widths: Vec<usize> = (0..columns).filter_map(widest).collect();
        for line in &self.lines {
            let mut text = format!("{:<width$}", line[0], width = widths[0]);
            for (cell, width) in line.iter().zip(&widths).skip(1) {
                text.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}

/// The memory table as text, one row a line, ending in a newline.
pub fn render(measured: &Measurement, fp32: Option<&Measurement>) -> String {
    Table::new(measured, fp32).to_string()
}

fn size(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| NOT_REPORTED.to_owned(), |bytes| bytes.to_string())
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
        assert_eq!(
            Table::render(&half, Some(&step(Phase::Forward, 600))),
            expected
        );
    }
}
