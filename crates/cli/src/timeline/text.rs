//! Texts that fit: their width is guessed upwards, as a viewer's font is not known.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Height of the letters in pixels: 8 where the drawing is shown 400 pixels wide.
pub(super) const SIZE: i32 = 28;
pub(super) const TITLE_SIZE: i32 = 34;
/// Left free at the edges.
pub(super) const MARGIN: i32 = 28;
/// Between things side by side.
pub(super) const GAP: i32 = 14;
/// Width of a swatch of the legend.
pub(super) const SWATCH: i32 = 56;
/// Before the legend, whose order is that of the stack.
pub(super) const LEGEND: &str = "from below:";

/// At least as wide as `text` is in common fonts without serifs.
pub(crate) fn width(text: &str, size: i32) -> i32 {
    let ems: f64 = text.chars().map(em).sum();
    (ems * f64::from(size)).ceil() as i32
}

/// The width of a letter in DejaVu Sans, which is wider than most, rounded up.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '!' => 0.35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.42,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        c if c.is_ascii_uppercase() => 0.78,
        c if c.is_ascii() => 0.645,
        _ => 1.1,
    }
}

/// `text` in one line, cut to `room` pixels.
pub(crate) fn fit(text: &str, size: i32, room: i32) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if width(&clean, size) <= room {
        return clean;
    }
    let mut kept = String::new();
    for c in clean.chars() {
        kept.push(c);
        if width(&kept, size) + width("…", size) > room {
            kept.pop();
            break;
        }
    }
    kept.trim_end().to_owned() + "…"
}

/// Black letters, placed by the middle of their height.
pub(crate) fn style(size: i32, horizontal: HPos) -> TextStyle<'static> {
    // The SVG backend divides a size by 1.24.
    ("sans-serif", f64::from(size) * 1.24)
        .into_font()
        .color(&BLACK)
        .pos(Pos::new(horizontal, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays() {
        assert_eq!(fit("layer1.0", 20, 200), "layer1.0");
        assert_eq!(fit("two\nlines", 20, 400), "two lines");
        assert_eq!(fit("", 20, 0), "");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        for room in [20, 60, 100, 317] {
            let cut = fit(&"wide Mm ".repeat(20), 20, room);
            assert!(cut.ends_with('…') && width(&cut, 20) <= room, "{cut}");
        }
    }
}
