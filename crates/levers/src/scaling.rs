//! Loss scaling: multiply the loss before the backward so that small f16 gradients survive, divide
//! the gradients afterwards, and skip the updates whose gradients overflowed.
//!
//! Micikevicius et al., "Mixed Precision Training", 2018 (<https://arxiv.org/abs/1710.03740>).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Skipped updates in a row after which training stops.
pub const MAX_CONSECUTIVE_SKIPS: u32 = 25;

/// Why a loss scale was refused.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum LossScaleError {
    /// The text names no loss scale.
    #[error("unknown loss scale '{0}': use auto, none, dynamic, or a positive number such as 1024")]
    Unknown(String),
    /// A number outside its range.
    #[error("loss scale: {0}")]
    Range(&'static str),
}

/// How the loss is scaled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LossScale {
    /// By 1: f32, and bf16, whose range is that of f32.
    #[default]
    None,
    /// By a fixed factor.
    Static(f32),
    /// By a factor that grows while all goes well and backs off on overflow.
    Dynamic(Dynamic),
}

/// The rule of a dynamic loss scale; defaults are those of the paper and of PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dynamic {
    /// First scale, 2^16.
    pub init: f32,
    /// Factor after `interval` good updates in a row, 2.
    pub growth: f32,
    /// Factor after an overflow, 0.5.
    pub backoff: f32,
    /// Good updates in a row before the scale grows, 2000.
    pub interval: u32,
    /// Never below, 1.
    pub min: f32,
    /// Never above, 2^24.
    pub max: f32,
}

impl Default for Dynamic {
    fn default() -> Self {
        Self {
            init: 65536.0,
            growth: 2.0,
            backoff: 0.5,
            interval: 2000,
            min: 1.0,
            max: 16_777_216.0,
        }
    }
}

impl LossScale {
    /// Checks every number.
    pub fn validate(self) -> Result<Self, LossScaleError> {
        let range = |ok: bool, message| {
            if ok {
                Ok(())
            } else {
                Err(LossScaleError::Range(message))
            }
        };
        match self {
            Self::None => {}
            Self::Static(scale) => range(
                scale.is_finite() && scale > 0.0,
                "a static scale must be a positive finite number",
            )?,
            Self::Dynamic(d) => {
                range(
                    d.min > 0.0 && d.min <= d.init && d.init <= d.max && d.max.is_finite(),
                    "want 0 < min <= init <= max, all finite",
                )?;
                range(
                    d.growth >= 1.0 && d.growth.is_finite(),
                    "growth must be at least 1",
                )?;
                range(
                    d.backoff > 0.0 && d.backoff < 1.0,
                    "backoff must lie between 0 and 1",
                )?;
                range(d.interval > 0, "interval must be at least 1")?;
            }
        }
        Ok(self)
    }
}

impl FromStr for LossScale {
    type Err = LossScaleError;

    fn from_str(text: &str) -> Result<Self, LossScaleError> {
        match text.trim() {
            "none" => Ok(Self::None),
            "dynamic" => Ok(Self::Dynamic(Dynamic::default())),
            number => number
                .parse()
                .map_err(|_| LossScaleError::Unknown(text.to_owned()))
                .map(Self::Static)?
                .validate(),
        }
    }
}

/// What came of one update's gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Finite: apply the update.
    Apply,
    /// The scaled gradient overflowed: skip the update; the scale has been lowered.
    SkipOverflow,
    /// The loss itself is not finite: skip; no scale can help, so it stays.
    SkipLoss,
}

/// The scale and its history; everything here is saved with a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossScaler {
    rule: LossScale,
    scale: f32,
    good_in_a_row: u32,
    skipped_in_a_row: u32,
    skipped: u64,
}

impl LossScaler {
    /// A scaler at its first scale.
    pub fn new(rule: LossScale) -> Result<Self, LossScaleError> {
        let scale = match rule.validate()? {
            LossScale::None => 1.0,
            LossScale::Static(scale) => scale,
            LossScale::Dynamic(dynamic) => dynamic.init,
        };
        Ok(Self {
            rule,
            scale,
            good_in_a_row: 0,
            skipped_in_a_row: 0,
            skipped: 0,
        })
    }

    /// How the scale moves.
    pub fn rule(&self) -> LossScale {
        self.rule
    }

    /// Factor for the loss.
    pub fn scale(&self) -> f32 {
        self.scale
    }

    /// Updates skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Whether so many updates in a row were skipped that training cannot go on.
    pub fn is_stuck(&self) -> bool {
        self.skipped_in_a_row >= MAX_CONSECUTIVE_SKIPS
    }

    /// Takes note of one update and moves the scale.
    pub fn observe(&mut self, loss_finite: bool, gradients_finite: bool) -> Verdict {
        if loss_finite && gradients_finite {
            self.skipped_in_a_row = 0;
            self.good_in_a_row += 1;
            if let LossScale::Dynamic(d) = self.rule
                && self.good_in_a_row >= d.interval
            {
                self.scale = (self.scale * d.growth).min(d.max);
                self.good_in_a_row = 0;
            }
            return Verdict::Apply;
        }
        self.skipped += 1;
        self.skipped_in_a_row += 1;
        self.good_in_a_row = 0;
        if !loss_finite {
            return Verdict::SkipLoss;
        }
        if let LossScale::Dynamic(d) = self.rule {
            self.scale = (self.scale * d.backoff).max(d.min);
        }
        Verdict::SkipOverflow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dynamic(rule: Dynamic) -> LossScaler {
        LossScaler::new(LossScale::Dynamic(rule)).unwrap()
    }

    /// Trap B01: growth without a ceiling ends in infinity.
    #[test]
    fn scale_is_capped() {
        let mut scaler = dynamic(Dynamic {
            interval: 1,
            ..Dynamic::default()
        });
        for _ in 0..150 {
            assert_eq!(scaler.observe(true, true), Verdict::Apply);
        }
        assert_eq!(scaler.scale(), 16_777_216.0);
    }

    /// Trap B02: backing off without a floor ends in zero; a stuck run must stop.
    #[test]
    fn scale_has_a_floor_and_a_stuck_run_is_noticed() {
        let mut scaler = dynamic(Dynamic::default());
        for update in 1..=40 {
            assert_eq!(scaler.observe(true, false), Verdict::SkipOverflow);
            assert_eq!(scaler.is_stuck(), update >= MAX_CONSECUTIVE_SKIPS);
        }
        assert_eq!(scaler.scale(), 1.0);
    }

    /// Trap B02: a NaN loss is no overflow, and lowering the scale would not help.
    #[test]
    fn non_finite_loss_leaves_the_scale_alone() {
        let mut scaler = dynamic(Dynamic::default());
        assert_eq!(scaler.observe(false, false), Verdict::SkipLoss);
        assert_eq!((scaler.scale(), scaler.skipped()), (65536.0, 1));
    }

    /// Trap B03: the first skips are normal, counted, and forgotten for the stop rule.
    #[test]
    fn a_good_update_resets_the_row() {
        let mut scaler = dynamic(Dynamic::default());
        for _ in 0..6 {
            scaler.observe(true, false);
        }
        scaler.observe(true, true);
        assert_eq!((scaler.scale(), scaler.skipped()), (1024.0, 6));
        assert!(!scaler.is_stuck());
    }

    #[test]
    fn out_of_range_is_refused() {
        assert!("0".parse::<LossScale>().is_err());
        assert!("-3".parse::<LossScale>().is_err());
        assert!("inf".parse::<LossScale>().is_err());
        assert!("big".parse::<LossScale>().is_err());
        assert_eq!("1024".parse(), Ok(LossScale::Static(1024.0)));
        let wrong = Dynamic {
            backoff: 1.0,
            ..Dynamic::default()
        };
        assert!(LossScaler::new(LossScale::Dynamic(wrong)).is_err());
    }
}
