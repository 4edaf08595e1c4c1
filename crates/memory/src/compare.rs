//! Predicted beside measured.

use crate::{Bytes, Measurement, Prediction, Row};

/// A row, or the peak, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What was said before.
    pub predicted: Option<Bytes>,
    /// What it was.
    pub measured: Option<Bytes>,
}

impl Difference {
    /// Predicted less measured, in bytes; `None` where a side is not known.
    pub fn bytes(&self) -> Option<i64> {
        let [predicted, measured] = [self.predicted?, self.measured?].map(|x| i128::from(x.0));
        i64::try_from(predicted - measured).ok()
    }

    /// The same as a fraction of what was measured; `None` too where nothing was.
    pub fn fraction(&self) -> Option<f64> {
        let measured = self.measured.filter(|measured| measured.0 > 0)?;
        Some(self.bytes()? as f64 / measured.0 as f64)
    }
}

/// Predicted against measured, signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Every row, in the order of the table.
    pub rows: Vec<(Row, Difference)>,
    /// The peak.
    pub peak: Difference,
    /// What stayed in use after the forward.
    pub kept_after_forward: Difference,
}

/// The peak may be off by this fraction before a run says so.
pub const TOLERANCE: f64 = 0.05;

impl Comparison {
    /// A warning where the peak was off by more than 5 %.
    pub fn warning(&self) -> Option<String> {
        let off = self.peak.fraction().filter(|off| off.abs() > TOLERANCE)?;
        let (predicted, measured) = (self.peak.predicted?, self.peak.measured?);
        Some(format!(
            "the peak was {measured}, and {predicted} was predicted ({:+.1} %): please report recipe and table",
            100.0 * off
        ))
    }
}

/// Sets a prediction beside what was measured.
pub fn compare(prediction: &Prediction, measured: &Measurement) -> Comparison {
    let row = |row| Difference {
        predicted: prediction.rows.get(row),
        measured: measured.rows.get(row),
    };
    Comparison {
        rows: Row::ALL.into_iter().map(|name| (name, row(name))).collect(),
        peak: Difference {
            predicted: Some(prediction.peak),
            measured: Some(measured.peak),
        },
        kept_after_forward: Difference {
            predicted: prediction.kept_after_forward,
            measured: measured.kept_after_forward,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ledger, Phase};

    fn step(peak: u64, gradients: Option<Bytes>) -> Measurement {
        Measurement {
            phase: Phase::Backward,
            peak: Bytes(peak),
            kept_after_forward: None,
            rows: Ledger::default().with(Row::Gradients, gradients),
        }
    }

    /// Trap B37: a run that needs more than was said says so.
    #[test]
    fn differences_are_signed_and_the_unknown_stays_unknown() {
        let off =
            |predicted: u64| compare(&step(predicted, Some(Bytes(3))).into(), &step(1000, None));
        let low = off(900);
        assert_eq!(low.peak.bytes(), Some(-100));
        assert_eq!(low.peak.fraction(), Some(-0.1));
        assert!(low.warning().unwrap().contains("-10.0 %"));
        assert_eq!(low.rows[Row::Gradients as usize].1.bytes(), None);
        assert_eq!(low.kept_after_forward.fraction(), None);
        assert_eq!(off(1040).warning(), None);
        assert!(off(1100).warning().unwrap().contains("+10.0 %"));
    }
}
