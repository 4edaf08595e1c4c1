//! A chart in words, for those who can't see it.

use super::{Lines, Series, data};
use crate::page::unit::Unit;

pub(super) fn label(lines: &Lines) -> String {
    let mut said = vec![format!("{}. {} over {}", lines.title, lines.y, lines.x)];
    said.extend(lines.series.iter().map(|one| series(one, lines.unit)));
    let levels = lines.levels.iter();
    said.extend(levels.map(|level| format!("{}: {}", level.label, lines.unit.value(level.y))));
    let marks = data::marks(lines).into_iter();
    said.extend(marks.map(|(label, at)| format!("{label}: {}", at.len())));
    said.join(". ")
}

fn series(series: &Series, unit: Unit) -> String {
    let known = || {
        series
            .points
            .iter()
            .map(|(_, y)| *y)
            .filter(|y| y.is_finite())
    };
    let name = match series.name.is_empty() {
        true => "line",
        false => &series.name,
    };
    let (Some(first), Some(last)) = (known().next(), known().next_back()) else {
        return format!("{name}: no points");
    };
    let least = known().fold(first, f64::min);
    let most = known().fold(first, f64::max);
    let [first, last, least, most] = [first, last, least, most].map(|value| unit.value(value));
    let count = series.points.len();
    format!("{name}: {count} points, first {first}, last {last}, least {least}, most {most}")
}
