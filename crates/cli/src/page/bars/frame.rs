//! Where the bars are, in pixels.

use leanburn_memory::Row;

use super::{Bars, parts};
use crate::page::canvas::At;
use crate::page::legend::Legend;
use crate::page::scale::Scale;
use crate::page::unit::Unit;
use crate::page::words::Words;

/// Around the words of a failure.
pub(super) const INSIDE: f64 = 6.0;
/// Narrower drawings have the names above the bars.
const BESIDE: f64 = 640.0;
const MARGIN: f64 = 4.0;
const TOP: f64 = 8.0;
const SWATCH: f64 = 28.0;
/// The share of the width that names beside the bars take at most.
const NAMES: f64 = 0.3;
const AFTER_NAME: f64 = 12.0;
pub(super) const BEFORE_TOTAL: f64 = 6.0;
/// The lines that a reason may have.
const REASON: usize = 8;

/// One bar's place.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub title: String,
    pub title_at: At,
    /// Top and bottom.
    pub y: [f64; 2],
    /// The lines that say why there is no bar.
    pub failure: Vec<String>,
}

/// The layout of one drawing.
pub(super) struct Frame {
    pub size: At,
    pub margin: f64,
    pub words: Words,
    pub title: At,
    /// Where it says that there is nothing.
    pub empty: At,
    /// Left and right end of the longest bar.
    pub x: [f64; 2],
    /// Top and bottom of all bars.
    pub y: [f64; 2],
    pub scale: Option<Scale>,
    /// The rows that occur; `None` is what has no row.
    pub rows: Vec<Option<Row>>,
    pub legend: Legend,
    pub places: Vec<Place>,
}

impl Frame {
    pub fn new(bars: &Bars, width: f64) -> Self {
        let beside = width >= BESIDE;
        let (margin, size) = (MARGIN, if beside { 15.0 } else { 13.0 });
        let words = Words::left(size);
        let title = (margin, TOP + words.line() / 2.0);
        let top = TOP + words.line() + 6.0;
        let rows = rows(bars);
        let names = rows.iter().map(|row| parts::name(*row).to_owned());
        let legend = Legend::new(names, SWATCH, [margin, width - margin], top, words);
        let x = ends(bars, words, beside, [margin, width - margin]);
        let failed = [x[0] + INSIDE, width - margin - INSIDE];
        let y = legend.bottom + 10.0;
        let (places, bottom) = places(bars, words, beside, failed, y);
        // Where all failed there is no axis.
        let totals = bars.bars.iter().filter_map(super::Bar::total);
        let most = totals.map(|total| total.0 as f64);
        let scale = Scale::roomy(most.chain([0.0]), Unit::Bytes);
        let scale = scale.filter(|_| bars.bars.iter().any(|bar| bar.rows.is_ok()));
        let axis = if scale.is_some() { 12.0 + size } else { 0.0 };
        Self {
            size: (width, bottom + axis + TOP),
            margin,
            words,
            title,
            empty: (margin, top + words.line() / 2.0),
            x,
            y: [y, bottom],
            scale,
            rows,
            legend,
            places,
        }
    }

    /// Where a bar of so many bytes ends.
    pub fn at(&self, bytes: f64) -> f64 {
        let share = self.scale.and_then(|scale| scale.share(bytes));
        self.x[0] + share.unwrap_or(0.0).min(1.0) * (self.x[1] - self.x[0])
    }

    /// Between the margins.
    pub fn room(&self) -> f64 {
        self.size.0 - 2.0 * self.margin
    }
}

/// The rows that occur in any bar, in the order of the table.
fn rows(bars: &Bars) -> Vec<Option<Row>> {
    let parts: Vec<_> = bars.bars.iter().flat_map(super::Bar::parts).collect();
    let all = Row::ALL.into_iter().map(Some).chain([None]);
    all.filter(|row| parts.iter().any(|(other, _)| other == row))
        .collect()
}

/// From the names to the totals.
fn ends(bars: &Bars, words: Words, beside: bool, [left, right]: [f64; 2]) -> [f64; 2] {
    let totals = bars.bars.iter().filter_map(super::Bar::total);
    let totals = totals.map(|total| words.bold().width(&total.to_string()));
    let end = right - totals.fold(0.0, f64::max) - BEFORE_TOTAL;
    if !beside {
        return [left, end];
    }
    let names = bars.bars.iter().map(|bar| words.width(&bar.title()));
    let name = names.fold(0.0, f64::max).min((right - left) * NAMES);
    [left + name + AFTER_NAME, end]
}

/// The places of all bars, and where the last one ends; `x` is the room for words of a failure.
fn places(bars: &Bars, words: Words, beside: bool, x: [f64; 2], top: f64) -> (Vec<Place>, f64) {
    let (thick, gap, group): (f64, f64, f64) = match beside {
        true => (32.0, 8.0, 22.0),
        false => (26.0, 6.0, 16.0),
    };
    let start = x[0] - INSIDE;
    let (left, room, above) = match beside {
        true => (MARGIN, start - AFTER_NAME - MARGIN, 0.0),
        false => (start, x[1] - x[0], words.line()),
    };
    let mut places: Vec<Place> = Vec::new();
    let mut y = top;
    for (index, bar) in bars.bars.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &bars.bars[before].group);
        y += match before.is_some_and(|before| *before != bar.group) {
            true => group,
            false => gap,
        };
        let failure = match &bar.rows {
            Ok(_) => Vec::new(),
            Err(reason) => words.wrap(&format!("\u{2715} failed: {reason}"), x[1] - x[0], REASON),
        };
        let tall = match failure.len() {
            0 => thick,
            lines => thick.max(lines as f64 * words.line() + 2.0 * INSIDE),
        };
        let middle = y + if beside { thick } else { above } / 2.0;
        let ends = [y + above, y + above + tall];
        places.push(Place {
            title: words.fit(&bar.title(), room),
            title_at: (left, middle),
            y: ends,
            failure,
        });
        y = ends[1];
    }
    (places, y + 8.0)
}
