//! The parts of a bar and the legend, which look like the rows in the drawing of a step.

use leanburn_memory::{Bytes, Row};
use plotters::style::WHITE;

use super::Bar;
use super::frame::{self, Frame, Place};
use crate::page::canvas::{Canvas, Drawn, INK, units};
use crate::page::words::Words;
use crate::timeline::columns::Band;
use crate::timeline::hatch;

/// A narrower part is a line.
const THINNEST: f64 = 1.5;
/// In a part without a row.
const UNKNOWN: &str = "?";
/// In the place of a bar.
pub(super) const NOTHING: &str = "no row reported";
/// The share of a part that its label may cover.
const COVERED: f64 = 0.6;

/// The name of a part in the legend.
pub(super) fn name(row: Option<Row>) -> &'static str {
    row.map_or("not told apart", Row::name)
}

pub(super) fn legend(canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
    let legend = &frame.legend;
    for (row, (at, name)) in frame.rows.iter().zip(&legend.entries) {
        let x = [at.0, at.0 + legend.sample];
        part(canvas, *row, x, [at.1 - 7.0, at.1 + 7.0])?;
        if row.is_none() {
            let middle = ((x[0] + x[1]) / 2.0, at.1);
            canvas.text(UNKNOWN, middle, frame.words.center())?;
        }
        canvas.text(name, legend.name_at(*at), frame.words)?;
    }
    Ok(())
}

/// The parts from left to right, then the total.
pub(super) fn bar(canvas: &Canvas<'_>, frame: &Frame, bar: &Bar, place: &Place) -> Drawn {
    let middle = (place.y[0] + place.y[1]) / 2.0;
    let mut sum = 0.0;
    for (row, bytes) in bar.parts() {
        let from = frame.at(sum);
        sum += bytes.0 as f64;
        let x = [from, frame.at(sum)];
        part(canvas, row, x, place.y)?;
        label(canvas, frame.words, (row, bytes), x, middle)?;
    }
    let at = (frame.at(sum) + frame::BEFORE_TOTAL, middle);
    match bar.total() {
        Some(total) => canvas.text(&total.to_string(), at, frame.words.bold()),
        None => canvas.text(NOTHING, at, frame.words),
    }
}

fn part(canvas: &Canvas<'_>, row: Option<Row>, x: [f64; 2], y: [f64; 2]) -> Drawn {
    let corners = [(x[0], y[0]), (x[1], y[1])];
    if x[1] - x[0] < THINNEST {
        return canvas.line(&[corners[0], (x[0], y[1])], INK, 0.5);
    }
    let look = row.map(hatch::look);
    let color = look.as_ref().map_or(WHITE, |look| look.color);
    canvas.rectangle(corners, color)?;
    if row.is_none() {
        // No hatching is left for what has no row.
        return canvas.dashed_outline(corners);
    }
    let band = Band::rectangle(units(x[0])..units(x[1]), units(y[0])..units(y[1]));
    let hatches = look.map_or(&[] as &[_], |look| look.hatches);
    let lines = hatches.iter().flat_map(|hatch| hatch::lines(&band, *hatch));
    canvas.hatching(lines.collect())?;
    canvas.outline(corners, INK, 1.0)
}

/// The name and the bytes inside a part, as much of them as leaves its looks to be seen.
fn label(
    canvas: &Canvas<'_>,
    words: Words,
    (row, bytes): (Option<Row>, Bytes),
    [from, to]: [f64; 2],
    middle: f64,
) -> Drawn {
    let words = words.center();
    let (both, bytes) = (format!("{} {bytes}", name(row)), bytes.to_string());
    let unknown = if row.is_none() { UNKNOWN } else { "" };
    let mut texts = [both.as_str(), bytes.as_str(), unknown].into_iter();
    let fits = |text: &&str| words.width(text) <= (to - from) * COVERED;
    let Some(text) = texts.find(fits).filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let center = (from + to) / 2.0;
    let (wide, tall) = (words.width(text) / 2.0 + 4.0, words.size / 2.0 + 3.0);
    let corners = [
        (center - wide, middle - tall),
        (center + wide, middle + tall),
    ];
    canvas.rectangle(corners, WHITE)?;
    canvas.text(text, (center, middle), words)
}
