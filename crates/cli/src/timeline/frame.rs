//! Where things are: pixels, the scale of the bytes, and the lines of the legend.

use std::ops::Range;

use leanburn_memory::{Bytes, Row};

use super::{Timeline, text};

pub(super) const WIDE: i32 = 1400;
pub(super) const NARROW: i32 = 900;
const LEFT: i32 = 140;
const RIGHT: i32 = 60;
/// A narrow plot has less, or the label of the peak has no room beside that of the budget.
const NARROW_RIGHT: i32 = 28;
const TOP: i32 = 156;
const BOTTOM: i32 = 680;
/// Below the plot: numbers and name of the x axis.
pub(super) const AXIS: i32 = 84;
/// A line of the legend.
const LINE: i32 = 44;
/// Left for the label of the peak above the highest thing that is drawn.
const HEADROOM: i32 = 92;
/// On a narrow plot it may have a budget above the scale over it.
const NARROW_HEADROOM: i32 = 120;
/// A budget this many times the peak would flatten the areas: it is only named.
const OFF_SCALE: u64 = 3;

const UNITS: [(&str, u64); 7] = [
    ("EiB", 1 << 60),
    ("PiB", 1 << 50),
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

/// What hardly changes lies below, so that what changes has a level ground.
pub(super) const STACK: [Row; 9] = [
    Row::Framework,
    Row::Parameters,
    Row::Buffers,
    Row::OptimizerState,
    Row::Inputs,
    Row::Activations,
    Row::Gradients,
    Row::Temporaries,
    Row::Allocator,
];

/// A row of the legend: its swatch starts at this pixel.
pub(super) type Entry = (Row, (i32, i32));

/// The layout of one drawing.
#[derive(Debug)]
pub(super) struct Frame {
    /// Width and height of the drawing.
    pub size: (u32, u32),
    /// Pixels of the plot, left to right.
    pub x: Range<i32>,
    /// Pixels of the plot, from its top down.
    pub y: Range<i32>,
    /// How many operations there are.
    pub operations: usize,
    /// The first operation with the most bytes.
    pub peak: (usize, Bytes),
    /// The budget, if one was given.
    pub budget: Option<Bytes>,
    /// The bytes at the top of the plot.
    pub most: f64,
    /// The unit of the y axis: name and bytes.
    pub unit: (&'static str, u64),
    /// The rows that occur, from the bottom of the stack up.
    pub legend: Vec<Entry>,
}

impl Frame {
    pub fn new(timeline: &Timeline<'_>, width: i32) -> Self {
        let (right, headroom) = match width < WIDE {
            true => (NARROW_RIGHT, NARROW_HEADROOM),
            false => (RIGHT, HEADROOM),
        };
        let peak = peak(timeline);
        let shown = timeline
            .budget
            .filter(|budget| budget.0 <= peak.1.0.saturating_mul(OFF_SCALE));
        let highest = peak.1.max(shown.unwrap_or_default()).0.max(1) as f64;
        let height = f64::from(BOTTOM - TOP);
        let most = highest * height / (height - f64::from(headroom));
        let (legend, bottom) = legend(timeline, width);
        Self {
            size: (width as u32, bottom as u32),
            x: LEFT..width - right,
            y: TOP..BOTTOM,
            operations: timeline.points.len(),
            peak,
            budget: timeline.budget,
            most,
            unit: unit(highest),
            legend,
        }
    }

    /// The pixel where an operation starts.
    pub fn at(&self, operation: usize) -> i32 {
        let share = operation as f64 / self.operations as f64;
        self.x.start + (share.min(1.0) * self.x.len() as f64).round() as i32
    }

    /// The pixel of so many bytes.
    pub fn height(&self, bytes: u64) -> i32 {
        let share = bytes as f64 / self.most;
        self.y.end - (share * self.y.len() as f64).round() as i32
    }

    /// The pixel of the budget, if it is on the scale.
    pub fn budget_line(&self) -> Option<i32> {
        let height = self.height(self.budget?.0);
        (height >= self.y.start).then_some(height)
    }

    /// The middle of the peak.
    pub fn peak_pixel(&self) -> (i32, i32) {
        let (operation, bytes) = self.peak;
        let x = (self.at(operation) + self.at(operation + 1)) / 2;
        (x, self.height(bytes.0))
    }
}

fn peak(timeline: &Timeline<'_>) -> (usize, Bytes) {
    let totals = timeline.points.iter().map(super::Point::total).enumerate();
    // The first of equals: `max_by_key` takes the last.
    let largest = totals.rev().max_by_key(|(_, total)| *total);
    largest.unwrap_or_default()
}

fn unit(highest: f64) -> (&'static str, u64) {
    let fits = |(_, bytes): &&(&str, u64)| highest >= *bytes as f64;
    *UNITS.iter().find(fits).unwrap_or(&("B", 1))
}

/// The entries in lines as wide as the drawing, and where they end.
fn legend(timeline: &Timeline<'_>, drawing: i32) -> (Vec<Entry>, i32) {
    let occurs = |row: &Row| timeline.points.iter().any(|p| p.rows[*row as usize] > 0);
    let (first, mut y) = (
        text::MARGIN + text::width(text::LEGEND, text::SIZE) + text::GAP,
        BOTTOM + AXIS + LINE / 2,
    );
    let mut x = first;
    let mut entries = Vec::new();
    for row in STACK.into_iter().filter(occurs) {
        let width = text::SWATCH + text::width(row.name(), text::SIZE) + 3 * text::GAP;
        if x + width > drawing - text::MARGIN {
            (x, y) = (first, y + LINE);
        }
        entries.push((row, (x, y)));
        x += width;
    }
    (entries, y + LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_stacked() {
        assert!(Row::ALL.into_iter().all(|row| STACK.contains(&row)));
    }

    #[test]
    fn the_unit_fits_the_size() {
        assert_eq!(unit(1.0).0, "B");
        assert_eq!(unit(1023.0 * 1048576.0).0, "MiB");
        assert_eq!(unit(1073741824.0).0, "GiB");
    }
}
