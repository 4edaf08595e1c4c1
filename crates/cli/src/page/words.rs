//! Words that fit: their width is guessed upwards, as in the drawing of a step.

use plotters::style::text_anchor::HPos;

use crate::timeline::text;

use super::canvas::{UNITS, units};

/// Bold letters are wider by this.
const BOLD: f64 = 1.08;

/// How words are set.
#[derive(Copy, Clone)]
pub(super) struct Words {
    /// Height of the letters in pixels.
    pub size: f64,
    /// Where the words are tied to their point.
    pub side: HPos,
    pub bold: bool,
}

impl Words {
    /// Words to the right of their point.
    pub fn left(size: f64) -> Self {
        let (side, bold) = (HPos::Left, false);
        Self { size, side, bold }
    }

    pub fn bold(self) -> Self {
        let bold = true;
        Self { bold, ..self }
    }

    /// Words to the left of their point.
    pub fn right(self) -> Self {
        let side = HPos::Right;
        Self { side, ..self }
    }

    /// Words around their point.
    pub fn center(self) -> Self {
        let side = HPos::Center;
        Self { side, ..self }
    }

    /// The height of a line.
    pub fn line(self) -> f64 {
        self.size * 1.4
    }

    /// Pixels that `words` take at most.
    pub fn width(self, words: &str) -> f64 {
        f64::from(text::width(words, units(self.size))) / UNITS * self.wider()
    }

    /// In one line, cut to `room` pixels.
    pub fn fit(self, words: &str, room: f64) -> String {
        text::fit(words, units(self.size), units(room / self.wider()))
    }

    /// In at most `most` lines of `room` pixels; the last one is cut.
    pub fn wrap(self, words: &str, room: f64, most: usize) -> Vec<String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let (mut lines, mut from) = (Vec::new(), 0);
        while from < words.len() {
            let fits = |to: &usize| self.width(&words[from..*to].join(" ")) <= room;
            let rest = from + 1..=words.len();
            // A word alone may be too long: it is cut.
            let to = rest.take_while(fits).last().unwrap_or(from + 1);
            if lines.len() + 1 >= most {
                lines.push(self.fit(&words[from..].join(" "), room));
                break;
            }
            lines.push(self.fit(&words[from..to].join(" "), room));
            from = to;
        }
        lines
    }

    fn wider(self) -> f64 {
        if self.bold { BOLD } else { 1.0 }
    }
}
