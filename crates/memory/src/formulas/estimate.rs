//! What a setup needs: figures, their rows and their sum.

use super::error::FormulaError;
use super::figure::{Amount, Figure};
use super::notation::{Formula, Letters};
use crate::{Bytes, Ledger, Row};

/// What a device of the first pipeline stage needs for a training step, after the formulas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    letters: Letters,
    figures: Vec<Figure>,
    notes: Vec<String>,
    rows: Ledger,
    total: Bytes,
}

impl Estimate {
    pub(super) fn new(letters: Letters) -> Self {
        Self {
            letters,
            figures: Vec::new(),
            notes: Vec::new(),
            rows: Ledger::default(),
            total: Bytes(0),
        }
    }

    /// Adds a number of parameters.
    pub(super) fn count(
        &mut self,
        name: &'static str,
        (formula, source): (Formula, String),
    ) -> Result<u64, FormulaError> {
        let count = self.evaluate(name, &formula)?;
        self.figures.push(Figure {
            name,
            row: None,
            formula,
            source,
            amount: Amount::Count(count),
        });
        Ok(count)
    }

    /// Adds a size, to `row` and the total where it has one.
    pub(super) fn size(
        &mut self,
        name: &'static str,
        row: Option<Row>,
        (formula, source): (Formula, String),
    ) -> Result<(), FormulaError> {
        let bytes = Bytes(self.evaluate(name, &formula)?);
        if let Some(row) = row {
            let total = self.total.checked_add(bytes);
            self.total = total.ok_or_else(|| too_large("the total"))?;
            // A row is a part of the total, so it fits where that does.
            let in_row = self.rows.get(row).unwrap_or_default();
            self.rows.set(row, in_row.checked_add(bytes));
        }
        self.figures.push(Figure {
            name,
            row,
            formula,
            source,
            amount: Amount::Size(bytes),
        });
        Ok(())
    }

    /// Names a letter that later formulas use.
    pub(super) fn define(&mut self, letter: char, value: u64, meaning: &'static str) {
        self.letters = std::mem::take(&mut self.letters).with(letter, value, meaning);
    }

    /// Adds a line at the end of the explanation.
    pub(super) fn note(&mut self, line: impl Into<String>) {
        self.notes.push(line.into());
    }

    /// The figures, in the order they were computed.
    pub fn figures(&self) -> &[Figure] {
        &self.figures
    }

    /// The rows of the memory table. What the formulas don't cover is `None`, not 0.
    pub fn ledger(&self) -> &Ledger {
        &self.rows
    }

    /// The sum of the rows: less than a run takes, by the rows that are `None`.
    pub fn total(&self) -> Bytes {
        self.total
    }

    /// One line for the letters, one for each figure, the total, and what it leaves out.
    pub fn explain(&self) -> Vec<String> {
        let mut lines = vec![self.letters.to_string()];
        lines.extend(self.figures.iter().map(Figure::to_string));
        let (covered, missing): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|(_, bytes)| bytes.is_some());
        let names: Vec<_> = covered.iter().map(|(row, _)| row.name()).collect();
        lines.push(format!("total = {} = {}", names.join(" + "), self.total));
        lines.extend(self.notes.iter().cloned());
        for (row, _) in missing {
            lines.push(format!("not included: {row} ({})", row.meaning()));
        }
        lines
    }

    fn evaluate(&self, name: &str, formula: &Formula) -> Result<u64, FormulaError> {
        let value = formula.value(&self.letters);
        value.ok_or_else(|| too_large(&format!("{name} = {formula}")))
    }
}

fn too_large(figure: &str) -> FormulaError {
    FormulaError::TooLarge {
        figure: figure.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> (Formula, String) {
        (Formula::new("2x"), "a source".to_owned())
    }

    #[test]
    fn figures_fill_rows_and_explain_themselves() {
        let mut estimate = Estimate::new(Letters::default().with('x', 512, "things"));
        estimate.size("a step", None, two()).unwrap();
        estimate.size("one", Some(Row::Activations), two()).unwrap();
        estimate
            .size("more", Some(Row::Activations), two())
            .unwrap();
        assert_eq!(estimate.total(), Bytes(2048));
        assert_eq!(
            estimate.ledger(),
            &Ledger::default().with(Row::Activations, Bytes(2048))
        );
        let lines = estimate.explain();
        assert_eq!(lines[0], "x = 512 things");
        assert_eq!(lines[1], "a step = 2x [a source] = 1.0 KiB");
        assert_eq!(lines[4], "total = activations = 2.0 KiB");
        assert_eq!(
            lines.last().unwrap(),
            "not included: framework (device context and kernels: device total minus allocator total)"
        );
    }

    #[test]
    fn a_sum_that_does_not_fit_is_an_error() {
        let letters = Letters::default().with('x', u64::MAX / 2, "things");
        let mut estimate = Estimate::new(letters);
        let row = Some(Row::Gradients);
        assert_eq!(estimate.size("most", row, two()), Ok(()));
        let error = estimate.size("too much", row, two()).unwrap_err();
        assert!(error.to_string().starts_with("the total exceeds 2^64 - 1"));
        assert_eq!(estimate.total(), Bytes(u64::MAX - 1));
    }
}
