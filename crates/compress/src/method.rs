//! How a range is chosen.

use std::fmt;
use std::str::FromStr;

/// Weight of a new batch in [`Method::Average`].
///
/// PyTorch's MovingAverageMinMaxObserver has 0.01, made for training: over the tens of batches of
/// a calibration the first would decide.
pub const AVERAGING: f64 = 0.1;

/// The percentile meant by `percentile`, the default of NVIDIA's pytorch-quantization.
pub const PERCENTILE: f64 = 99.99;

/// How a range is chosen from what was seen. Every range is then widened to contain zero.
///
/// Prints and parses as `minmax`, `average`, `percentile`, `percentile:99.9`, `entropy`, `mse`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// From the smallest to the largest value: nothing is clipped.
    MinMax,
    /// Moving averages of the batches' minima and maxima: a batch moves them by [`AVERAGING`] of
    /// the difference, the first sets them (PyTorch's MovingAverageMinMaxObserver). The one method
    /// for which the order of batches matters.
    Average,
    /// This percentage of the values, 50 to 100: at most half of the rest is clipped on either
    /// side, as in ONNX Runtime's asymmetric PercentileCalibrater.
    ///
    /// Of the values that are not zero: zeros fit any range, and after a ReLU they would leave too
    /// little to the rest. Fewer than 20 000 of them are not clipped at 99.99.
    Percentile(f64),
    /// The least Kullback-Leibler divergence of the quantized distribution from the seen one
    /// (Migacz, "8-bit Inference with TensorRT", GTC 2017), with 256 levels and two free ends.
    /// Exact zeros don't count, nor do peaks right next to zero.
    Entropy,
    /// The least expected squared error between a value and its quantized self. Clipping a far
    /// outlier costs its distance squared, so it takes many other values to pay for that.
    Mse,
}

/// Why a method was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MethodError {
    /// The text names no method.
    #[error(
        "unknown calibration method '{0}': use minmax, average, percentile, percentile:99.9, \
         entropy or mse"
    )]
    Unknown(String),
    /// Not a percentage, or one that keeps less than half.
    #[error("percentile '{0}' is out of range: use a percentage from 50 to 100, such as 99.99")]
    Percentile(String),
}

impl Method {
    /// All of them, the percentile at [`PERCENTILE`].
    pub const ALL: [Self; 5] = [
        Self::MinMax,
        Self::Average,
        Self::Percentile(PERCENTILE),
        Self::Entropy,
        Self::Mse,
    ];

    /// As typed, without a percentage.
    pub fn name(self) -> &'static str {
        match self {
            Self::MinMax => "minmax",
            Self::Average => "average",
            Self::Percentile(_) => "percentile",
            Self::Entropy => "entropy",
            Self::Mse => "mse",
        }
    }

    /// Checks the percentage.
    ///
    /// # Errors
    ///
    /// [`MethodError::Percentile`] where it is not from 50 to 100.
    pub fn validate(self) -> Result<Self, MethodError> {
        match self {
            // A share such as 0.9999 is a likely slip.
            Self::Percentile(percent) if !(50.0..=100.0).contains(&percent) => {
                Err(MethodError::Percentile(percent.to_string()))
            }
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percentile(percent) if *percent != PERCENTILE => {
                f.pad(&format!("{}:{percent}", self.name()))
            }
            _ => f.pad(self.name()),
        }
    }
}

impl FromStr for Method {
    type Err = MethodError;

    fn from_str(text: &str) -> Result<Self, MethodError> {
        if let Some(number) = text.strip_prefix("percentile:") {
            let percent = number
                .parse()
                .map_err(|_| MethodError::Percentile(number.to_owned()))?;
            return Self::Percentile(percent).validate();
        }
        Self::ALL
            .into_iter()
            .find(|method| method.name() == text)
            .ok_or_else(|| MethodError::Unknown(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for method in Method::ALL {
            assert_eq!(method.to_string(), method.name());
            assert_eq!(method.name().parse(), Ok(method));
        }
        let percentile = Method::Percentile(99.9);
        assert_eq!(percentile.to_string(), "percentile:99.9");
        assert_eq!("percentile:99.9".parse(), Ok(percentile));
        assert_eq!("percentile:100".parse(), Ok(Method::Percentile(100.0)));
    }

    #[test]
    fn unknown_names_list_the_known() {
        for text in ["kl", "", "MinMax", "minmax:3"] {
            let error = text.parse::<Method>().unwrap_err().to_string();
            assert!(error.contains(&format!("'{text}'")), "{error}");
            for method in Method::ALL {
                assert!(error.contains(method.name()), "{error}");
            }
        }
    }

    #[test]
    fn a_senseless_percentage_is_refused() {
        for number in ["0.9999", "100.1", "-1", "NaN", "inf", "", "high"] {
            let error = format!("percentile:{number}")
                .parse::<Method>()
                .unwrap_err()
                .to_string();
            assert!(error.contains("from 50 to 100"), "{error}");
        }
    }
}
