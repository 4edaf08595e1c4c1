//! Charts over the updates of a run.

use super::{Lines, Series, Unit};

/// A chart over updates.
pub fn chart(title: &str, y: &str, unit: Unit, series: Vec<Series>) -> Lines {
    Lines {
        title: title.into(),
        x: "update".into(),
        y: y.into(),
        unit,
        series,
        ..Lines::default()
    }
}
