//! The comparison as aligned text: two columns a backend, predicted and measured.

use leanburn_memory::table::{NOT_REPORTED, align, size};
use leanburn_memory::{Bytes, Measurement, Row};

use super::comparison::{Comparison, Side, largest_difference};
use crate::child::Ran;

/// Losses of longer runs are told by the first and the last few.
const LOSSES: usize = 10;

/// The table, the losses, and why a backend failed.
pub fn text(comparison: &Comparison) -> String {
    let micro = match comparison.accumulate {
        1 => String::new(),
        k => format!(" x {k}"),
    };
    let mut text = format!(
        "{}, batch {}{micro}, {} updates\n\n{}",
        comparison.title,
        comparison.batch,
        comparison.steps,
        align(&lines(comparison)),
    );
    for side in &comparison.sides {
        if let Err(failure) = &side.result {
            text += &format!("\n{} failed: {failure}\n", side.backend);
        }
    }
    text
}

/// Of one backend: as predicted, as measured.
type Cells = [String; 2];

fn lines(comparison: &Comparison) -> Vec<Vec<String>> {
    let line = |label: &str, cells: &dyn Fn(&Side) -> Cells| {
        let mut line = vec![label.to_owned()];
        line.extend(comparison.sides.iter().flat_map(cells));
        line
    };
    let ran = |label: &str, of: &dyn Fn(&Ran) -> Option<String>| {
        line(label, &|side| {
            let told = match &side.result {
                Ok(ran) => of(ran).unwrap_or_else(|| NOT_REPORTED.into()),
                Err(_) => "failed".into(),
            };
            [String::new(), told]
        })
    };
    let mut lines = vec![
        line("", &|side| [side.backend.to_string(), String::new()]),
        line("memory", &|_| ["predicted".into(), "measured".into()]),
    ];
    lines.extend(
        Row::ALL.map(|row| line(row.name(), &|side| sizes(side, &|step| step.rows.get(row)))),
    );
    lines.push(line("peak", &|side| sizes(side, &|step| Some(step.peak))));
    lines.push(ran("reserved", &|ran| {
        ran.reserved.map(|bytes| Bytes(bytes).to_string())
    }));
    lines.push(ran("dtype", &|ran| Some(ran.precision.clone())));
    lines.push(ran("first update", &|ran| {
        ran.seconds.first().map(|s| format!("{s:.2} s"))
    }));
    lines.push(ran("median update", &|ran| {
        ran.seconds_per_step.map(|s| format!("{s:.3} s"))
    }));
    lines.extend(told(comparison.steps as usize).into_iter().map(|at| {
        ran(&format!("loss {}", at + 1), &|ran| {
            let loss = ran.losses.get(at).copied().flatten();
            loss.map(|loss| format!("{loss:.6}"))
        })
    }));
    lines.push(ran("largest difference", &|ran| {
        let difference = largest_difference(ran, comparison.reference()?)?;
        Some(format!("{difference:.1e}"))
    }));
    lines
}

/// Which losses are printed.
fn told(steps: usize) -> Vec<usize> {
    match steps <= LOSSES {
        true => (0..steps).collect(),
        false => (0..LOSSES / 2).chain(steps - LOSSES / 2..steps).collect(),
    }
}

fn sizes(side: &Side, of: &dyn Fn(&Measurement) -> Option<Bytes>) -> Cells {
    side.steps().map(|step| size(step.as_ref().and_then(of)))
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn a_backend_that_failed_keeps_its_column_and_its_reason() {
        let text = text(&comparison());
        let line = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap();
        assert_eq!(
            line("dtype").split_whitespace().collect::<Vec<_>>(),
            ["dtype", "failed", "fp32", "fp32"]
        );
        assert!(line("largest difference").ends_with("1.0e-2"), "{text}");
        assert!(text.contains("cuda failed: no NVIDIA driver"), "{text}");
    }

    #[test]
    fn a_long_run_tells_its_ends() {
        assert_eq!(told(3), [0, 1, 2]);
        assert_eq!(told(100).len(), LOSSES);
        assert_eq!(told(100)[LOSSES - 1], 99);
    }
}
