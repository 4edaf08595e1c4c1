//! Samples and their names, in lines as wide as the drawing.

use super::canvas::At;
use super::words::Words;

const GAP: f64 = 8.0;
const BETWEEN: f64 = 20.0;

/// Where the entries of a legend are.
#[derive(Clone, Debug, Default)]
pub(super) struct Legend {
    /// The left end of each sample, and the name beside it.
    pub entries: Vec<(At, String)>,
    /// The width of a sample.
    pub sample: f64,
    /// Where the legend ends.
    pub bottom: f64,
}

impl Legend {
    /// From `left` to `right` and down from `top`.
    pub fn new(
        names: impl Iterator<Item = String>,
        sample: f64,
        [left, right]: [f64; 2],
        top: f64,
        words: Words,
    ) -> Self {
        let line = words.line() + 4.0;
        let (mut x, mut y) = (left, top + line / 2.0);
        let mut entries = Vec::new();
        for name in names {
            let name = words.fit(&name, right - left - sample - GAP);
            let width = sample + GAP + words.width(&name);
            if x > left && x + width > right {
                (x, y) = (left, y + line);
            }
            entries.push(((x, y), name));
            x += width + BETWEEN;
        }
        let bottom = if entries.is_empty() {
            top
        } else {
            y + line / 2.0
        };
        Self {
            entries,
            sample,
            bottom,
        }
    }

    /// Where the name of an entry starts.
    pub fn name_at(&self, (x, y): At) -> At {
        (x + self.sample + GAP, y)
    }
}
