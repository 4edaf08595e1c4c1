//! Memory by row: a stacked bar for each backend and side.

mod frame;
mod parts;

use leanburn_memory::{Bytes, Ledger, Row};
use plotters::style::WHITE;

use super::canvas::{self, Canvas, Drawn, GRID, INK};
use super::ticks::inside;
use super::unit::Unit;
use frame::{Frame, Place};

/// Stacked bars of the rows of the memory table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bars {
    /// Above the drawing; what doesn't fit is cut off.
    pub title: String,
    /// From the top down; those of one group follow each other.
    pub bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// What the bar shares with its neighbours: `flex`.
    pub group: String,
    /// What tells it from them: `measured`.
    pub name: String,
    /// The rows, or why there are none. A row that is not reported is left out.
    pub rows: Result<Ledger, String>,
    /// All bytes where they are known: what is more than the rows becomes a part without a name.
    pub peak: Option<Bytes>,
}

impl Bar {
    /// The group and the name: `flex, measured`.
    fn title(&self) -> String {
        let parts = [self.group.as_str(), self.name.as_str()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }

    /// All bytes; `None` where nothing is known.
    fn total(&self) -> Option<Bytes> {
        let rows = self.rows.as_ref().ok()?;
        let known = rows.iter().any(|(_, bytes)| bytes.is_some());
        let rows = known.then(|| rows.known_total());
        rows.max(self.peak)
    }

    /// The row of each part and its bytes; the rest without a row comes last.
    fn parts(&self) -> Vec<(Option<Row>, Bytes)> {
        let Ok(rows) = &self.rows else {
            return Vec::new();
        };
        let known = rows.iter().filter_map(|(row, bytes)| Some((row, bytes?)));
        let known = known.map(|(row, bytes)| (Some(row), bytes));
        let rest = self
            .total()
            .unwrap_or_default()
            .saturating_sub(rows.known_total());
        let parts = known.chain([(None, rest)]);
        parts.filter(|(_, bytes)| bytes.0 > 0).collect()
    }

    /// What the bar says, for those who can't see it.
    fn spoken(&self) -> String {
        let title = self.title();
        let total = match (&self.rows, self.total()) {
            (Err(reason), _) => return format!("{title}: failed: {reason}"),
            (Ok(_), None) => return format!("{title}: {}", parts::NOTHING),
            (Ok(_), Some(total)) => total,
        };
        let parts = self.parts().into_iter();
        let parts = parts.map(|(row, bytes)| format!("{} {bytes}", parts::name(row)));
        let parts: Vec<String> = parts.collect();
        match parts.is_empty() {
            true => format!("{title}: {total}"),
            false => format!("{title}: {total} ({})", parts.join(", ")),
        }
    }
}

impl Bars {
    /// The drawing as an SVG so many pixels wide (240 to 4000).
    pub fn svg(&self, width: u32) -> String {
        let frame = Frame::new(self, f64::from(width.clamp(240, 4000)));
        canvas::svg(frame.size, &self.spoken(), |canvas| {
            self.draw(canvas, &frame)
        })
    }

    fn spoken(&self) -> String {
        let bars = self.bars.iter().map(Bar::spoken);
        let said = [self.title.clone()].into_iter().chain(bars);
        said.collect::<Vec<_>>().join(". ")
    }

    fn draw(&self, canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
        let title = frame.words.bold().fit(&self.title, frame.room());
        canvas.text(&title, frame.title, frame.words.bold())?;
        if self.bars.is_empty() {
            return canvas.text("nothing to draw", frame.empty, frame.words);
        }
        parts::legend(canvas, frame)?;
        axis(canvas, frame)?;
        for (bar, place) in self.bars.iter().zip(&frame.places) {
            behind(canvas, frame, place)?;
            canvas.text(&place.title, place.title_at, frame.words)?;
            match &bar.rows {
                Ok(_) => parts::bar(canvas, frame, bar, place)?,
                Err(_) => failure(canvas, frame, place)?,
            }
        }
        Ok(())
    }
}

/// The bytes under the bars, and lines up from them.
fn axis(canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
    let Some(scale) = &frame.scale else {
        return Ok(());
    };
    let ticks = scale.fitting(Unit::Bytes, frame.x, frame.size.0, frame.words);
    let y = frame.y;
    for (bytes, number) in &ticks.at {
        let x = frame.at(*bytes);
        canvas.line(&[(x, y[0]), (x, y[1] + 4.0)], GRID, 1.0)?;
        let number = ticks.with_unit(number);
        let half = frame.words.width(&number) / 2.0;
        let below = (
            inside(x, half, frame.size.0),
            y[1] + 6.0 + frame.words.size / 2.0,
        );
        canvas.text(&number, below, frame.words.center())?;
    }
    canvas.line(&[(frame.x[0], y[0]), (frame.x[0], y[1] + 4.0)], INK, 1.0)
}

/// Nothing runs through a name above its bar.
fn behind(canvas: &Canvas<'_>, frame: &Frame, place: &Place) -> Drawn {
    let (x, y) = place.title_at;
    let (wide, half) = (frame.words.width(&place.title), frame.words.line() / 2.0);
    canvas.rectangle([(x - 1.0, y - half), (x + wide, y + half)], WHITE)
}

/// Why there is no bar, in a dashed box in its place.
fn failure(canvas: &Canvas<'_>, frame: &Frame, place: &Place) -> Drawn {
    let [top, bottom] = place.y;
    let [left, right] = [frame.x[0], frame.size.0 - frame.margin];
    canvas.rectangle([(left, top), (right, bottom)], WHITE)?;
    canvas.dashed_outline([(left, top), (right, bottom)])?;
    for (index, line) in place.failure.iter().enumerate() {
        let y = top + frame::INSIDE + (index as f64 + 0.5) * frame.words.line();
        canvas.text(line, (left + frame::INSIDE, y), frame.words)?;
    }
    Ok(())
}
