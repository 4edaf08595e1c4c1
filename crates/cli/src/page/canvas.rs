//! Lines, areas and words on an SVG, in pixels of a screen.

use maud::html;
use plotters::coord::Shift;
use plotters::prelude::*;

use crate::timeline::text;

use super::dash::dashes;
use super::words::Words;

pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
pub(super) type At = (f64, f64);

/// Plotters knows whole units only: two of them are a pixel, so that slopes stay smooth.
pub(super) const UNITS: f64 = 2.0;

pub(super) const GRID: RGBColor = RGBColor(0xd9, 0xd9, 0xd9);
pub(super) const INK: RGBColor = RGBColor(0x1a, 0x1a, 0x1a);

pub(super) fn units(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

fn unit((x, y): At) -> (i32, i32) {
    (units(x), units(y))
}

/// A drawing in progress.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// A drawing of this size that says `label` to those who can't see it.
pub(super) fn svg(size: At, label: &str, draw: impl FnOnce(&Canvas<'_>) -> Drawn) -> String {
    let (width, height) = (units(size.0), units(size.1));
    let mut svg = String::new();
    let drawn = {
        let backend = SVGBackend::with_string(&mut svg, (width as u32, height as u32));
        let area = backend.into_drawing_area();
        let canvas = Canvas { area };
        let filled = canvas.area.fill(&WHITE).and_then(|()| draw(&canvas));
        filled.and_then(|()| canvas.area.present())
    };
    let failed = drawn.err().map(|error| {
        let (x, y, size) = (units(12.0), units(24.0), units(15.0));
        let words = format!("could not be drawn: {error}");
        html! { text x=(x) y=(y) font-size=(size) { (words) } }.into_string() + "</svg>\n"
    });
    let inner = svg.split_once('>').map_or("", |(_, inner)| inner);
    let label = html! { (clean(label)) }.into_string();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{}",
        size.0,
        size.1,
        failed.as_deref().unwrap_or(inner)
    )
}

/// Without what an SVG can't hold, such as the colours of a terminal.
fn clean(words: &str) -> String {
    let bad = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    words.replace(bad, " ")
}

impl Canvas<'_> {
    /// Words beside or around a point, placed by the middle of their height.
    pub fn text(&self, words: &str, at: At, style: Words) -> Drawn {
        let mut font = text::style(units(style.size), style.side);
        if style.bold {
            font.font = font.font.style(FontStyle::Bold);
        }
        let words = Text::new(clean(words), unit(at), font);
        self.area.draw(&words)
    }

    pub fn line(&self, points: &[At], color: RGBColor, width: f64) -> Drawn {
        let points: Vec<(i32, i32)> = points.iter().copied().map(unit).collect();
        let style = color.stroke_width(units(width) as u32);
        self.area.draw(&PathElement::new(points, style))
    }

    pub fn outline(&self, [a, b]: [At; 2], color: RGBColor, width: f64) -> Drawn {
        let corners = [a, (b.0, a.1), b, (a.0, b.1), a];
        self.line(&corners, color, width)
    }

    pub fn dashed_outline(&self, [a, b]: [At; 2]) -> Drawn {
        let corners = [a, (b.0, a.1), b, (a.0, b.1), a];
        let mut dashes = dashes(&corners, &[4.0, 3.0]).into_iter();
        dashes.try_for_each(|dash| self.line(&dash, INK, 1.0))
    }

    pub fn rectangle(&self, corners: [At; 2], color: RGBColor) -> Drawn {
        let corners = corners.map(unit);
        self.area.draw(&Rectangle::new(corners, color.filled()))
    }

    pub fn polygon(&self, corners: &[At], color: RGBColor) -> Drawn {
        let corners: Vec<(i32, i32)> = corners.iter().copied().map(unit).collect();
        self.area.draw(&Polygon::new(corners, color.filled()))
    }

    /// An area that others can be seen through.
    pub fn area(&self, corners: &[At], color: RGBColor, share: f64) -> Drawn {
        let corners: Vec<(i32, i32)> = corners.iter().copied().map(unit).collect();
        let style = color.mix(share).filled();
        self.area.draw(&Polygon::new(corners, style))
    }

    pub fn circle(&self, at: At, radius: f64, color: RGBColor) -> Drawn {
        let circle = Circle::new(unit(at), units(radius), color.filled());
        self.area.draw(&circle)
    }

    /// Lines whose ends are given in units, such as those of a hatching.
    pub fn hatching(&self, lines: Vec<[(i32, i32); 2]>) -> Drawn {
        let thin = BLACK.mix(0.6).stroke_width(2);
        let mut lines = lines.into_iter();
        lines.try_for_each(|line| self.area.draw(&PathElement::new(line, thin)))
    }
}
