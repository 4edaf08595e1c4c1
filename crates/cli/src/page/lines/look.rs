//! What tells lines and marks apart: a dash pattern and a symbol as well as a colour.

use plotters::style::{RGBColor, WHITE};

use crate::page::canvas::{At, Canvas, Drawn};

/// The width of a line.
pub(super) const THICK: f64 = 2.0;
/// The line down from a mark.
pub(super) const MARK: RGBColor = RGBColor(0x80, 0x80, 0x80);
/// Half the height of a symbol.
const RADIUS: f64 = 4.0;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Circle,
    Square,
    Up,
    Diamond,
    Ring,
    Box,
    /// Pointing down.
    Pin,
    Hollow,
}

pub(super) struct Look {
    pub color: RGBColor,
    pub dash: &'static [f64],
    pub symbol: Symbol,
}

/// The look of the line with this index; there are six of them.
pub(super) fn series(index: usize) -> Look {
    let (color, dash, symbol): (_, &[f64], _) = match index % 6 {
        0 => ((0x0b, 0x53, 0x94), &[], Symbol::Circle),
        1 => ((0xc8, 0x55, 0x00), &[9.0, 4.0], Symbol::Square),
        2 => ((0x00, 0x79, 0x5c), &[2.5, 3.5], Symbol::Up),
        3 => ((0x8e, 0x3a, 0x80), &[10.0, 3.5, 2.5, 3.5], Symbol::Diamond),
        4 => ((0x4d, 0x4d, 0x4d), &[18.0, 5.0], Symbol::Ring),
        _ => ((0x8a, 0x6a, 0x00), &[5.0, 3.0, 5.0, 8.0], Symbol::Box),
    };
    let color = RGBColor(color.0, color.1, color.2);
    Look {
        color,
        dash,
        symbol,
    }
}

/// The edge of what a line spans.
pub(super) fn pale(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let [r, g, b] = [r, g, b].map(|part| 255 - (255 - part) / 2);
    RGBColor(r, g, b)
}

/// The symbol of marks with the label of this index.
pub(super) fn mark(index: usize) -> Symbol {
    [Symbol::Pin, Symbol::Hollow, Symbol::Box, Symbol::Ring][index % 4]
}

pub(super) fn symbol(canvas: &Canvas<'_>, symbol: Symbol, at: At, color: RGBColor) -> Drawn {
    let r = RADIUS;
    let around = |offsets: &[At]| -> Vec<At> {
        let points = offsets.iter().map(|(x, y)| (at.0 + x, at.1 + y));
        points.collect()
    };
    let closed = |offsets: &[At]| around(&[offsets, &offsets[..1]].concat());
    let square = [(-r, -r), (r, -r), (r, r), (-r, r)].map(|(x, y)| (x * 0.85, y * 0.85));
    let diamond = [(0.0, -r), (r, 0.0), (0.0, r), (-r, 0.0)].map(|(x, y)| (x * 1.2, y * 1.2));
    match symbol {
        Symbol::Circle => canvas.circle(at, r, color),
        Symbol::Square => canvas.polygon(&around(&square), color),
        Symbol::Diamond => canvas.polygon(&around(&diamond), color),
        Symbol::Up => canvas.polygon(&around(&[(-r, r), (0.0, -r), (r, r)]), color),
        Symbol::Pin => canvas.polygon(&around(&[(-r, -r), (r, -r), (0.0, r)]), color),
        Symbol::Ring => {
            canvas.circle(at, r, color)?;
            canvas.circle(at, r - 1.5, WHITE)
        }
        Symbol::Box => {
            canvas.polygon(&around(&square), WHITE)?;
            canvas.line(&closed(&square), color, 1.5)
        }
        Symbol::Hollow => {
            canvas.polygon(&around(&diamond), WHITE)?;
            canvas.line(&closed(&diamond), color, 1.5)
        }
    }
}
