//! Formulas as the papers print them, and their exact values.

use std::fmt;

use super::reader;

/// A formula in the notation of the papers, such as `sbh/t(34 + 5as/h)`.
///
/// The text that is printed is the text that is evaluated, so the two can't disagree.
/// What stands side by side is multiplied, `^` takes one digit, and `/` divides by the one letter,
/// number or parenthesis after it: `sbh/t(34 + 5as/h)` is `(sbh/t)` times `(34 + 5as/h)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Formula(String);

impl Formula {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The value, rounded up once at the end, or `None` where it does not fit in 64 bits.
    ///
    /// # Panics
    ///
    /// Where the text is no formula or has a letter without a value: formulas are written in this
    /// crate, so that is a mistake in it.
    pub(super) fn value(&self, letters: &Letters) -> Option<u64> {
        reader::evaluate(&self.0, letters)?.ceil()
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What the letters of a formula stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters(Vec<Letter>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Letter {
    letter: char,
    value: u64,
    meaning: &'static str,
}

impl Letters {
    pub(super) fn with(mut self, letter: char, value: u64, meaning: &'static str) -> Self {
        self.0.push(Letter {
            letter,
            value,
            meaning,
        });
        self
    }

    /// What `letter` stands for; panics where it stands for nothing.
    pub(super) fn value(&self, letter: char) -> u64 {
        let known = self.0.iter().find(|known| known.letter == letter);
        known
            .unwrap_or_else(|| panic!("no value for `{letter}`"))
            .value
    }
}

/// `L = 96 layers, h = 12288 hidden`
impl fmt::Display for Letters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, known) in self.0.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            let (letter, value, meaning) = (known.letter, known.value, known.meaning);
            write!(f, "{comma}{letter} = {value} {meaning}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_evaluates() {
        let letters = Letters::default()
            .with('a', 3, "heads")
            .with('t', 4, "tensor");
        assert_eq!(letters.to_string(), "a = 3 heads, t = 4 tensor");
        let formula = Formula::new("5a/t");
        assert_eq!(formula.to_string(), "5a/t");
        assert_eq!(formula.value(&letters), Some(4));
    }
}
