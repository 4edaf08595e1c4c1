//! Reads a formula's text and evaluates it on the way.

use std::iter::Peekable;
use std::str::Chars;

use super::fraction::Fraction;
use super::notation::Letters;

/// The exact value of `text`, or `None` where it does not fit.
///
/// # Panics
///
/// Where the text is no formula, or has a letter that stands for nothing.
pub(super) fn evaluate(text: &str, letters: &Letters) -> Option<Fraction> {
    let mut reader = Reader {
        rest: text.chars().peekable(),
        letters,
    };
    let value = reader.sum()?;
    assert_eq!(reader.peek(), None, "`{text}` goes on after its end");
    Some(value)
}

/// Goes from left to right; `None` is a value that does not fit.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    letters: &'a Letters,
}

impl Reader<'_> {
    fn sum(&mut self) -> Option<Fraction> {
        let mut total = self.product()?;
        while self.take('+') {
            total = total.plus(self.product()?)?;
        }
        Some(total)
    }

    fn product(&mut self) -> Option<Fraction> {
        let mut product = self.power()?;
        while !matches!(self.peek(), None | Some('+' | ')')) {
            product = if self.take('/') {
                product.over(self.power()?)?
            } else {
                product.times(self.power()?)?
            };
        }
        Some(product)
    }

    fn power(&mut self) -> Option<Fraction> {
        let base = self.factor()?;
        if !self.take('^') {
            return Some(base);
        }
        let digit = self.peek().and_then(|c| c.to_digit(10));
        self.rest.next();
        let times = digit.expect("`^` takes one digit");
        (0..times).try_fold(Fraction::ONE, |power, _| power.times(base))
    }

    fn factor(&mut self) -> Option<Fraction> {
        if self.take('(') {
            let inner = self.sum()?;
            assert!(self.take(')'), "a parenthesis stays open");
            return Some(inner);
        }
        match self.peek().expect("a formula ends too early") {
            '0'..='9' => self.number(),
            letter => {
                self.rest.next();
                Some(Fraction::whole(self.letters.value(letter)))
            }
        }
    }

    fn number(&mut self) -> Option<Fraction> {
        let mut number = 0u64;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            number = number.checked_mul(10)?.checked_add(digit.into())?;
            self.rest.next();
        }
        Some(Fraction::whole(number))
    }

    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.rest.next_if_eq(&' ').is_some() {}
        self.rest.peek().copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        self.peek() == Some(wanted) && self.rest.next().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters() -> Letters {
        Letters::default()
            .with('a', 3, "heads")
            .with('t', 4, "tensor")
    }

    fn value(text: &str) -> Option<u64> {
        evaluate(text, &letters())?.ceil()
    }

    #[test]
    fn reads_what_the_papers_write() {
        for (text, wanted) in [
            ("7", 7),
            ("2a", 6),
            ("12a^2", 108),
            ("a(2 + t)", 18),
            // `/` takes one factor, and what follows multiplies again.
            ("8/t(1 + a)", 8),
            ("24/(at)", 2),
            ("a(10 + 24/t + 5a/(at))", 52),
            // Rounded once: four quarters are 1, and 5/4 is 2.
            ("1/t + 1/t + 1/t + 1/t", 1),
            ("5/t", 2),
        ] {
            assert_eq!(value(text), Some(wanted), "{text}");
        }
    }

    #[test]
    fn too_large_is_none() {
        assert_eq!(value("18446744073709551615 + 1"), None);
        assert_eq!(value("18446744073709551616"), None);
        assert_eq!(value("4294967296^4"), None);
        assert_eq!(value("4294967296^2/t"), Some(1 << 62));
    }

    #[test]
    #[should_panic(expected = "no value for `x`")]
    fn an_unknown_letter_is_a_mistake() {
        let _ = value("2x");
    }

    #[test]
    #[should_panic(expected = "goes on after its end")]
    fn a_stray_parenthesis_is_a_mistake() {
        let _ = value("2a)");
    }
}
