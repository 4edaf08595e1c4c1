//! Where the axes, the legend and the notes are, in pixels.

use super::data::{self, drawable};
use super::{Level, Lines};
use crate::page::canvas::At;
use crate::page::legend::Legend;
use crate::page::scale::Scale;
use crate::page::ticks::Ticks;
use crate::page::unit::Unit;
use crate::page::words::Words;

pub(super) const MARGIN: f64 = 4.0;
const TOP: f64 = 8.0;
const SAMPLE: f64 = 34.0;
/// Above the plot, for the symbols of marks.
const STRIP: f64 = 12.0;
/// A level this many times the largest point would flatten the lines: it is only named.
const OFF_SCALE: f64 = 4.0;

/// What an entry of the legend stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Entry {
    /// The line with this index.
    Series(usize),
    /// The marks with this index in [`Frame::marks`].
    Marks(usize),
}

/// The layout of one chart.
pub(super) struct Frame {
    pub size: At,
    pub words: Words,
    pub title: At,
    /// Left and right end of the plot.
    pub x: [f64; 2],
    /// Top and bottom of the plot.
    pub y: [f64; 2],
    /// The name of the y axis, above the plot.
    pub name: At,
    across: Scale,
    up: Scale,
    /// The numbers of both axes.
    pub ticks: [Ticks; 2],
    pub entries: Vec<Entry>,
    pub legend: Legend,
    /// Each label of marks, and the x of its marks.
    pub marks: Vec<(String, Vec<f64>)>,
    /// What is not drawn, and why.
    pub notes: Vec<(String, At)>,
}

/// The letters of a chart of this width.
pub(super) fn words(width: f64) -> Words {
    Words::left(if width < 640.0 { 13.0 } else { 15.0 })
}

impl Frame {
    /// `None` where no point can be drawn.
    pub fn new(lines: &Lines, width: f64) -> Option<Self> {
        let words = words(width);
        let (up, absent) = upwards(lines)?;
        let marks = data::marks(lines);
        let at = drawable(lines).map(|(x, _)| x);
        let marked = marks.iter().flat_map(|(_, at)| at.iter().copied());
        let across = Scale::tight(at.chain(marked))?;
        let right = width - MARGIN;
        let mut y = TOP + words.line();
        let entries = entries(lines, &marks);
        let names = entries.iter().map(|entry| entry.name(lines, &marks));
        let legend = Legend::new(names, SAMPLE, [MARGIN, right], y + 4.0, words);
        y = legend.bottom;
        let said = data::said(lines, absent, width);
        let said = words.wrap(&said, right - MARGIN, 3).into_iter();
        let notes: Vec<(String, At)> = said
            .map(|line| {
                y += words.line();
                (line, (MARGIN, y - words.line() / 2.0))
            })
            .collect();
        let name = (MARGIN, y + 8.0 + words.line() / 2.0);
        let strip = if marks.is_empty() { 0.0 } else { STRIP };
        let top = y + 20.0 + words.line() + strip;
        let high = (width * 0.27).clamp(190.0, 320.0);
        let numbers = up.ticks(lines.unit, (high / 45.0) as usize);
        let widths = numbers.at.iter().map(|(_, text)| words.width(text));
        let left = MARGIN + widths.fold(0.0, f64::max) + 10.0;
        // The symbol of the last point is inside the drawing.
        let x = [left, right - 4.0];
        let updates = across.fitting(Unit::Number, x, width, words);
        let bottom = top + high;
        Some(Self {
            size: (width, bottom + 10.0 + 2.0 * words.line() + 4.0),
            words,
            title: (MARGIN, TOP + words.line() / 2.0),
            x,
            y: [top, bottom],
            name,
            across,
            up,
            ticks: [updates, numbers],
            entries,
            legend,
            marks,
            notes,
        })
    }

    /// A point in pixels, without a y where it has no place.
    pub fn place(&self, (x, y): At) -> (f64, Option<f64>) {
        let [left, right] = self.x;
        let x = left + self.across.share(x).unwrap_or(0.0) * (right - left);
        (x, self.height(y))
    }

    /// Where so much is; `None` where it has no place.
    pub fn height(&self, y: f64) -> Option<f64> {
        let [top, bottom] = self.y;
        Some(bottom - self.up.share(y)? * (bottom - top))
    }

    /// Between the margins.
    pub fn room(&self) -> f64 {
        self.size.0 - 2.0 * MARGIN
    }
}

impl Entry {
    fn name(&self, lines: &Lines, marks: &[(String, Vec<f64>)]) -> String {
        match self {
            Entry::Series(index) => lines.series[*index].name.clone(),
            Entry::Marks(index) => match &marks[*index] {
                (label, at) if at.len() > 1 => format!("{label} \u{d7}{}", at.len()),
                (label, _) => label.clone(),
            },
        }
    }
}

/// One line alone needs no entry: the axis has its name.
fn entries(lines: &Lines, marks: &[(String, Vec<f64>)]) -> Vec<Entry> {
    let series = (0..lines.series.len()).map(Entry::Series);
    let marks = (0..marks.len()).map(Entry::Marks);
    let alone = lines.series.len() == 1;
    series.filter(|_| !alone).chain(marks).collect()
}

/// The scale of the y axis, and the levels above it.
fn upwards(lines: &Lines) -> Option<(Scale, Vec<&Level>)> {
    let values = || drawable(lines).map(|(_, y)| y);
    let most = values().reduce(f64::max)?;
    let (off, on): (Vec<&Level>, Vec<&Level>) = lines
        .levels
        .iter()
        .partition(|level| !lines.log && most > 0.0 && level.y > most * OFF_SCALE);
    let all = values().chain(on.iter().map(|level| level.y));
    let scale = match lines.log {
        true => Scale::logarithmic(all)?,
        false => Scale::roomy(all, lines.unit)?,
    };
    Some((scale, off))
}
