//! A drawing of one training step: the live bytes of every row, operation by operation.

mod chart;
mod columns;
mod frame;
mod hatch;
mod labels;
mod text;

use std::ops::Range;

use plotters::prelude::{IntoDrawingArea, SVGBackend, WHITE};
use thiserror::Error;

use leanburn_memory::{Bytes, Phase, Row};

use frame::Frame;

const ROWS: usize = Row::ALL.len();

/// What is alive while one operation runs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// Bytes by row, indexed by `row as usize`.
    pub rows: [u64; ROWS],
}

impl Point {
    /// The bytes of all rows.
    pub fn total(&self) -> Bytes {
        self.rows.into_iter().map(Bytes).sum()
    }
}

/// One training step, to be drawn.
#[derive(Clone, Debug)]
pub struct Timeline<'a> {
    /// Above the drawing; what doesn't fit is cut off.
    pub title: &'a str,
    /// One point per operation, in the order they run.
    pub points: &'a [Point],
    /// The operations of each phase, in order.
    pub phases: &'a [(Phase, Range<usize>)],
    /// The memory there is: drawn as a dashed line.
    pub budget: Option<Bytes>,
    /// Labels of operations, such as the first of each block; about twelve of them are drawn.
    pub marks: &'a [(usize, String)],
}

/// Why a step could not be drawn.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// There is nothing to draw.
    #[error("a timeline of no operations can't be drawn: trace at least one operation")]
    Empty,
    /// The drawing library failed.
    #[error("the timeline could not be drawn: {0}")]
    Draw(String),
}

impl Timeline<'_> {
    /// The drawing as an SVG, 1400 pixels wide and readable down to 400: stacked areas of the rows
    /// that occur, the first row at the bottom, told apart by grey level and hatching as well as by
    /// colour. A long step is reduced to 1200 columns, each the largest of its operations.
    ///
    /// # Errors
    ///
    /// [`TimelineError::Empty`] where there are no points.
    pub fn svg(&self) -> Result<String, TimelineError> {
        if self.points.is_empty() {
            return Err(TimelineError::Empty);
        }
        let frame = Frame::new(self);
        let mut svg = String::new();
        self.draw(&frame, &mut svg)
            .map_err(|error| TimelineError::Draw(error.to_string()))?;
        Ok(svg)
    }

    fn draw(&self, frame: &Frame, svg: &mut String) -> chart::Drawn {
        let area = SVGBackend::with_string(svg, frame.size).into_drawing_area();
        area.fill(&WHITE)?;
        chart::axes(&area, frame)?;
        chart::areas(&area, frame, self.points)?;
        chart::legend(&area, frame)?;
        labels::title(&area, self.title)?;
        labels::phases(&area, frame, self.phases)?;
        labels::marks(&area, frame, self.marks)?;
        labels::budget(&area, frame)?;
        labels::peak(&area, frame, self.phases)?;
        area.present()
    }
}

#[cfg(test)]
mod tests;
