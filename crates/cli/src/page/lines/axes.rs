//! The grid with its numbers, the marks, and the levels with their names.

use plotters::style::WHITE;

use super::frame::Frame;
use super::{Level, Lines, look};
use crate::page::canvas::{At, Canvas, Drawn, GRID, INK};
use crate::page::dash::dashes;
use crate::page::ticks::inside;

/// More marks than one in so many pixels would be a curtain: they have no lines.
const CURTAIN: f64 = 10.0;
/// Marks nearer than this are one.
const NEAR: f64 = 4.0;

pub(super) fn grid(canvas: &Canvas<'_>, frame: &Frame, lines: &Lines) -> Drawn {
    let ([left, right], [top, bottom]) = (frame.x, frame.y);
    let [across, up] = &frame.ticks;
    for (value, number) in &up.at {
        let Some(y) = frame.height(*value) else {
            continue;
        };
        canvas.line(&[(left, y), (right, y)], GRID, 1.0)?;
        canvas.text(number, (left - 9.0, y), frame.words.right())?;
    }
    for (value, number) in &across.at {
        let (x, _) = frame.place((*value, 0.0));
        canvas.line(&[(x, bottom), (x, bottom + 5.0)], INK, 1.0)?;
        let half = frame.words.width(number) / 2.0;
        let below = (
            inside(x, half, frame.size.0),
            bottom + 8.0 + frame.words.line() / 2.0,
        );
        canvas.text(number, below, frame.words.center())?;
    }
    canvas.line(&[(left, top), (left, bottom), (right, bottom)], INK, 1.0)?;
    let name = match (lines.log, up.unit) {
        (true, "") => format!("{} (log scale)", lines.y),
        (_, "") => lines.y.clone(),
        (true, unit) => format!("{}, {unit} (log scale)", lines.y),
        (false, unit) => format!("{}, {unit}", lines.y),
    };
    let name = frame.words.fit(&name, frame.room());
    canvas.text(&name, frame.name, frame.words)?;
    let below = frame.words.fit(&lines.x, frame.room());
    let at = (
        (left + right) / 2.0,
        bottom + 8.0 + frame.words.line() * 1.5,
    );
    canvas.text(&below, at, frame.words.center())
}

/// A symbol above the plot and a line down for each mark.
pub(super) fn marks(canvas: &Canvas<'_>, frame: &Frame) -> Drawn {
    let [top, bottom] = frame.y;
    for (index, (_, marks)) in frame.marks.iter().enumerate() {
        let curtain = marks.len() as f64 > (frame.x[1] - frame.x[0]) / CURTAIN;
        let mut free = f64::MIN;
        for mark in marks {
            let (x, _) = frame.place((*mark, 0.0));
            if x < free {
                continue;
            }
            free = x + NEAR;
            if !curtain {
                canvas.line(&[(x, top - 4.0), (x, bottom)], look::MARK, 1.0)?;
            }
            look::symbol(canvas, look::mark(index), (x, top - 7.0), INK)?;
        }
    }
    Ok(())
}

/// A dashed line across.
pub(super) fn level(canvas: &Canvas<'_>, frame: &Frame, level: &Level) -> Drawn {
    let [left, right] = frame.x;
    let Some(y) = level_height(frame, level) else {
        return Ok(());
    };
    for dash in dashes(&[(left, y), (right, y)], &[12.0, 6.0]) {
        canvas.line(&dash, INK, 1.5)?;
    }
    Ok(())
}

fn level_height(frame: &Frame, level: &Level) -> Option<f64> {
    let [top, bottom] = frame.y;
    frame.height(level.y).filter(|y| (top..=bottom).contains(y))
}

/// The names of the levels, each on the side of its line where it hides the fewest `dots`.
pub(super) fn names(canvas: &Canvas<'_>, frame: &Frame, lines: &Lines, dots: &[At]) -> Drawn {
    let mut taken: Vec<[At; 2]> = Vec::new();
    let words = frame.words;
    for level in &lines.levels {
        let Some(y) = level_height(frame, level) else {
            continue;
        };
        let ([left, right], [top, bottom]) = (frame.x, frame.y);
        let name = format!("{} {}", level.label, lines.unit.value(level.y));
        let name = words.fit(&name, right - left - 12.0);
        let (wide, tall) = (words.width(&name) + 8.0, words.line());
        let places = [
            (right - wide - 4.0, y - tall - 3.0),
            (left + 4.0, y - tall - 3.0),
            (right - wide - 4.0, y + 3.0),
            (left + 4.0, y + 3.0),
        ];
        let boxes = places.map(|(x, y)| [(x, y), (x + wide, y + tall)]);
        let inside = boxes
            .into_iter()
            .filter(|[from, to]| from.1 >= top - tall && to.1 <= bottom);
        let hidden = |place: &[At; 2]| {
            let dots = dots.iter().filter(|dot| holds(place, dot)).count();
            let names = taken.iter().filter(|other| meet(place, other)).count();
            dots + names * 100_000
        };
        let Some(place) = inside.min_by_key(hidden) else {
            continue;
        };
        canvas.rectangle(place, WHITE)?;
        let middle = (place[0].1 + place[1].1) / 2.0;
        // The width is guessed upwards: tied to the near side, the name is at the edge.
        match place[0].0 > (left + right) / 2.0 {
            true => canvas.text(&name, (place[1].0 - 4.0, middle), words.right())?,
            false => canvas.text(&name, (place[0].0 + 4.0, middle), words)?,
        }
        taken.push(place);
    }
    Ok(())
}

fn holds([from, to]: &[At; 2], (x, y): &At) -> bool {
    (from.0..=to.0).contains(x) && (from.1..=to.1).contains(y)
}

fn meet(a: &[At; 2], b: &[At; 2]) -> bool {
    a[0].0 < b[1].0 && b[0].0 < a[1].0 && a[0].1 < b[1].1 && b[0].1 < a[1].1
}
