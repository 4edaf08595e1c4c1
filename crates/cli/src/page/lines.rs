//! A quantity over a run, such as the loss over its updates.

mod axes;
mod curve;
mod data;
mod frame;
mod look;
mod spoken;

use super::canvas::{self, At, Canvas, Drawn, INK};
use super::dash::dashes;
use super::unit::Unit;
use frame::{Entry, Frame};

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lines {
    /// Above the drawing; what doesn't fit is cut off.
    pub title: String,
    /// What the chart runs along: `update`.
    pub x: String,
    /// What it shows: `loss`.
    pub y: String,
    /// What that is counted in.
    pub unit: Unit,
    /// Whether each step up is a multiple; what is not above 0 has no place then.
    pub log: bool,
    /// The lines.
    pub series: Vec<Series>,
    /// What happened on the way.
    pub marks: Vec<Mark>,
    /// Lines across, such as a predicted peak.
    pub levels: Vec<Level>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// x and y; where y is not finite, the line has a gap. Points without an x are left out.
    pub points: Vec<(f64, f64)>,
}

/// Something that happened at an x; those with the same label are one entry of the legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// What: `skipped step`.
    pub label: String,
}

/// A line across the chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// How high.
    pub y: f64,
    /// What it is; the number is added: `predicted peak`.
    pub label: String,
}

impl Lines {
    /// The drawing as an SVG so many pixels wide (240 to 4000). Of many points, the
    /// mean, the least and the largest of each column of pixels are kept.
    pub fn svg(&self, width: u32) -> String {
        let width = f64::from(width.clamp(240, 4000));
        let spoken = spoken::label(self);
        match Frame::new(self, width) {
            Some(frame) => canvas::svg(frame.size, &spoken, |canvas| self.draw(canvas, &frame)),
            None => self.nothing(width, &spoken),
        }
    }

    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
        let title = frame.words.bold().fit(&self.title, frame.room());
        canvas.text(&title, frame.title, frame.words.bold())?;
        self.legend(canvas, frame)?;
        for (line, at) in &frame.notes {
            canvas.text(line, *at, frame.words)?;
        }
        axes::grid(canvas, frame, self)?;
        axes::marks(canvas, frame)?;
        for level in &self.levels {
            axes::level(canvas, frame, level)?;
        }
        let series = self.series.iter().enumerate();
        let pieces = series.map(|(index, series)| (index, curve::pieces(series, frame)));
        let pieces: Vec<_> = pieces.collect();
        for (index, pieces) in &pieces {
            curve::spans(canvas, pieces, *index)?;
        }
        for (index, pieces) in &pieces {
            let points = self.series[*index].points.len();
            curve::line(canvas, pieces, *index, self.series.len(), points)?;
        }
        let pieces = pieces.iter().flat_map(|(_, pieces)| pieces);
        let dots: Vec<At> = pieces.flat_map(curve::Piece::dots).collect();
        axes::names(canvas, frame, self, &dots)
    }

    fn legend(&self, canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
        let legend = &frame.legend;
        for (entry, (at, name)) in frame.entries.iter().zip(&legend.entries) {
            let end = (at.0 + legend.sample, at.1);
            let middle = ((at.0 + end.0) / 2.0, at.1);
            match entry {
                Entry::Series(index) => {
                    let look = look::series(*index);
                    for dash in dashes(&[*at, end], look.dash) {
                        canvas.line(&dash, look.color, look::THICK)?;
                    }
                    look::symbol(canvas, look.symbol, middle, look.color)?;
                }
                Entry::Marks(index) => {
                    let line = [(middle.0, at.1 - 8.0), (middle.0, at.1 + 8.0)];
                    canvas.line(&line, look::MARK, 1.0)?;
                    look::symbol(canvas, look::mark(*index), (middle.0, at.1 - 4.0), INK)?;
                }
            }
            canvas.text(name, legend.name_at(*at), frame.words)?;
        }
        Ok(())
    }

    /// A small drawing that says why it is empty.
    fn nothing(&self, width: f64, spoken: &str) -> String {
        let words = frame::words(width);
        let (margin, line) = (frame::MARGIN, words.line());
        let room = width - 2.0 * margin;
        let said = format!("nothing to draw: {}", data::reason(self));
        let lines = words.wrap(&said, room, 3);
        let height = 2.0 * margin + line * (1.5 + lines.len() as f64);
        canvas::svg((width, height), spoken, |canvas| {
            let title = words.bold().fit(&self.title, room);
            canvas.text(&title, (margin, margin + line / 2.0), words.bold())?;
            for (index, text) in lines.iter().enumerate() {
                let y = margin + line * (index as f64 + 2.0);
                canvas.text(text, (margin, y), words)?;
            }
            Ok(())
        })
    }
}
