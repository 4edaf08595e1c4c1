//! Which points have a place, and what is said of those that have none.

use super::{Level, Lines, Series};
use crate::page::canvas::At;

const DENSE: &str = "The line is a mean, the shade goes from the least to the largest.";

/// The marks by label, in the order the labels come.
pub(super) fn marks(lines: &Lines) -> Vec<(String, Vec<f64>)> {
    let mut marks: Vec<(String, Vec<f64>)> = Vec::new();
    for mark in lines.marks.iter().filter(|mark| mark.x.is_finite()) {
        match marks.iter_mut().find(|(label, _)| *label == mark.label) {
            Some((_, at)) => at.push(mark.x),
            None => marks.push((mark.label.clone(), vec![mark.x])),
        }
    }
    for (_, at) in &mut marks {
        at.sort_by(f64::total_cmp);
    }
    marks
}

/// All points with a place.
pub(super) fn drawable(lines: &Lines) -> impl Iterator<Item = At> + Clone {
    let points = lines.series.iter().flat_map(|series| &series.points);
    let finite = points
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite());
    finite.filter(|(_, y)| !lines.log || *y > 0.0)
}

/// Whether a line has more points than a chart of this width has pixels for.
pub(super) fn is_dense(series: &Series, width: f64) -> bool {
    series.points.len() as f64 > 2.0 * width
}

/// What is not drawn or not as it is, in words.
pub(super) fn said(lines: &Lines, above: Vec<&Level>, width: f64) -> String {
    let above = above.into_iter().map(|level| {
        let value = lines.unit.value(level.y);
        format!("{} {value} is above the scale.", level.label)
    });
    let missing = Some(missing(lines)).filter(|missing| !missing.is_empty());
    let missing = missing.map(|missing| format!("Not drawn: {missing}."));
    let dense = lines.series.iter().any(|series| is_dense(series, width));
    let dense = dense.then(|| DENSE.to_owned());
    above
        .chain(missing)
        .chain(dense)
        .collect::<Vec<_>>()
        .join(" ")
}

/// How many points have no place, and why.
fn missing(lines: &Lines) -> String {
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let known = |(x, y): &&At| x.is_finite() && y.is_finite();
    let unknown = points().filter(|point| !known(point)).count();
    let low = points()
        .filter(known)
        .filter(|(_, y)| lines.log && *y <= 0.0);
    let why = [
        (unknown, "not finite"),
        (low.count(), "not above 0, on a log scale"),
    ];
    let why = why.into_iter().filter(|(count, _)| *count > 0);
    let why = why.map(|(count, why)| match count {
        1 => format!("1 value {why}"),
        _ => format!("{count} values {why}"),
    });
    why.collect::<Vec<_>>().join(", ")
}

/// Why there is nothing to draw.
pub(super) fn reason(lines: &Lines) -> String {
    match missing(lines) {
        missing if missing.is_empty() => "there are no points".to_owned(),
        missing => missing,
    }
}
