//! The memory table of a page.

use leanburn_memory::table::NOT_REPORTED;
use leanburn_memory::{Bytes, Difference, Measurement, Row};

use super::{Block, Cell};

/// What stands above it.
pub const NOTE: &str = "A row that is not reported is not 0. The allocator's and the framework's bytes come on top \
                        of the peak.";

/// Rows down, and for every name across: predicted, measured, and the difference.
pub fn table(sides: &[(String, [Option<Measurement>; 2])]) -> Block {
    let mut head = vec!["row".to_owned()];
    for (name, _) in sides {
        head.extend(
            ["predicted", "measured", "difference"]
                .map(|column| format!("{name} {column}").trim().to_owned()),
        );
    }
    let line = |label: &str, of: &dyn Fn(&Measurement) -> Option<Bytes>| {
        let mut line = vec![Cell::Text(label.to_owned())];
        for (_, steps) in sides {
            let [predicted, measured] = steps.each_ref().map(|step| step.as_ref().and_then(of));
            line.extend([
                size(predicted),
                size(measured),
                difference(predicted, measured),
            ]);
        }
        line
    };
    let mut rows: Vec<Vec<Cell>> = Row::ALL
        .into_iter()
        .map(|row| line(row.name(), &|step| step.rows.get(row)))
        .collect();
    rows.push(line("peak", &|step| Some(step.peak)));
    rows.push(line("kept after the forward", &|step| {
        step.kept_after_forward
    }));
    Block::Table { head, rows }
}

fn size(bytes: Option<Bytes>) -> Cell {
    bytes.map_or_else(
        || Cell::Text(NOT_REPORTED.into()),
        |bytes| Cell::Number(bytes.to_string()),
    )
}

/// In percent of what was measured.
fn difference(predicted: Option<Bytes>, measured: Option<Bytes>) -> Cell {
    let fraction = Difference {
        predicted,
        measured,
    }
    .fraction();
    fraction.map_or_else(
        || Cell::Text(String::new()),
        |off| Cell::Number(format!("{:+.1} %", 100.0 * off)),
    )
}
