//! A drawing of one training step: the live bytes of every row, operation by operation.

mod chart;
pub(crate) mod columns;
mod frame;
pub(crate) mod hatch;
mod labels;
pub(crate) mod text;

use std::ops::Range;

use plotters::prelude::{IntoDrawingArea, SVGBackend, WHITE};
use thiserror::Error;

use leanburn_memory::{Bytes, Phase, Prediction, Row};

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

/// A step as SVG, for wide and for narrow screens.
pub struct Drawings {
    pub wide: String,
    pub narrow: String,
}

/// The predicted step, with its blocks and the memory there is.
///
/// # Errors
///
/// [`TimelineError::Empty`] where the prediction's method follows no operations.
pub fn draw(
    prediction: &Prediction,
    title: &str,
    budget: Option<Bytes>,
) -> Result<Drawings, TimelineError> {
    let points = prediction.timeline.iter().map(|rows| Point { rows: *rows });
    let points: Vec<Point> = points.collect();
    let blocks = prediction.blocks.iter().enumerate();
    let marks: Vec<(usize, String)> = blocks.map(|(n, at)| (*at, format!("block {n}"))).collect();
    let timeline = Timeline {
        title,
        points: &points,
        phases: &prediction.phases,
        budget,
        marks: &marks,
    };
    Ok(Drawings {
        wide: timeline.svg()?,
        narrow: timeline.narrow_svg()?,
    })
}

impl Timeline<'_> {
    /// The drawing as an SVG, 1400 pixels wide: stacked areas of the rows
    /// that occur, the first row at the bottom, told apart by grey level and hatching as well as by
    /// colour. A long step is reduced to 1200 columns, each the largest of its operations.
    ///
    /// # Errors
    ///
    /// [`TimelineError::Empty`] where there are no points.
    pub fn svg(&self) -> Result<String, TimelineError> {
        self.of_width(frame::WIDE)
    }

    /// The same, 900 pixels wide with letters of the same height: for a page that is shown on a
    /// telephone.
    ///
    /// # Errors
    ///
    /// [`TimelineError::Empty`] where there are no points.
    pub fn narrow_svg(&self) -> Result<String, TimelineError> {
        self.of_width(frame::NARROW)
    }

    fn of_width(&self, width: i32) -> Result<String, TimelineError> {
        if self.points.is_empty() {
            return Err(TimelineError::Empty);
        }
        let frame = Frame::new(self, width);
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
pub(crate) mod tests;
