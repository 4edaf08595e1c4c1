//! Where a number is on an axis.

use super::unit::Unit;

/// Larger numbers would leave what 64 bits can tell.
const LARGEST: f64 = 1e300;
/// Left free above the largest number, and below the smallest one.
const PADDING: f64 = 0.05;

/// An axis from one number to another.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    /// Whether each step is a multiple of the one before.
    pub log: bool,
    /// No two ticks are nearer than this.
    pub least: f64,
}

impl Scale {
    /// Exactly around `values`, such as the updates of a run; `None` where there are none.
    /// Whole numbers have no ticks between them.
    pub fn tight(values: impl Iterator<Item = f64> + Clone) -> Option<Self> {
        let mut finite = values.clone().filter(|value| value.is_finite());
        let whole = finite.all(|value| value.fract() == 0.0);
        let (low, high) = bounds(values)?;
        let apart = (low.abs().max(high.abs()) * 1e-6).max(f64::MIN_POSITIVE);
        let (log, least) = (false, if whole { 1.0 } else { 0.0 });
        // One number alone is in the middle.
        Some(match high - low >= apart {
            true => Self {
                low,
                high,
                log,
                least,
            },
            false => Self {
                low: low - apart.max(1.0),
                high: high + apart.max(1.0),
                log,
                least,
            },
        })
    }

    /// Around `values` with some room, from 0 where that is near.
    pub fn roomy(values: impl Iterator<Item = f64>, unit: Unit) -> Option<Self> {
        let (low, high) = bounds(values)?;
        let (log, least) = (false, 0.0);
        let near = unit != Unit::Number || low <= high / 2.0;
        if low >= 0.0 && near {
            let high = if high > 0.0 { high } else { 1.0 };
            return Some(Self {
                low: 0.0,
                high: (high * (1.0 + PADDING)).min(LARGEST),
                log,
                least,
            });
        }
        let apart = (low.abs().max(high.abs()) * 1e-6).max(f64::MIN_POSITIVE);
        let room = match high - low >= apart {
            true => (high - low) * PADDING,
            false => low.abs().max(high.abs()) * 0.1,
        };
        let (low, high) = ((low - room).max(-LARGEST), (high + room).min(LARGEST));
        Some(Self {
            low,
            high,
            log,
            least,
        })
    }

    /// Around the `values` above 0, each step a multiple of the one before.
    pub fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = bounds(values.filter(|value| *value > 0.0))?;
        let room = match high / low {
            // One number alone is in the middle of a decade.
            ratio if ratio < 1.0 + 1e-6 => 10f64.sqrt(),
            ratio if ratio.is_finite() => ratio.powf(PADDING),
            _ => 1e10,
        };
        let low = (low / room).max(f64::MIN_POSITIVE);
        let high = (high * room).min(LARGEST);
        let (log, least) = (true, 0.0);
        Some(Self {
            low,
            high,
            log,
            least,
        })
    }

    /// How far along the axis: 0 at its start, 1 at its end; `None` where a number has no place.
    pub fn share(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.log && value <= 0.0) {
            return None;
        }
        let value = value.clamp(-LARGEST, LARGEST);
        Some(match self.log {
            true => {
                (value.max(f64::MIN_POSITIVE).ln() - self.low.ln())
                    / (self.high.ln() - self.low.ln())
            }
            false => (value - self.low) / (self.high - self.low),
        })
    }
}

/// The least and the largest of those that are numbers.
fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    let mut values = finite.map(|value| value.clamp(-LARGEST, LARGEST));
    let first = values.next()?;
    Some(values.fold((first, first), |(low, high), value| {
        (low.min(value), high.max(value))
    }))
}
