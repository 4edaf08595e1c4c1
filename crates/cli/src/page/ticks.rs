//! The numbers that are written on an axis.

use super::scale::Scale;
use super::unit::{self, Unit};
use super::words::Words;

/// The numbers on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    /// Where, and what is written there.
    pub at: Vec<(f64, String)>,
    /// The unit of all of them, empty where each has its own.
    pub unit: &'static str,
}

impl Ticks {
    /// The number with the unit that all share.
    pub fn with_unit(&self, number: &str) -> String {
        format!("{number} {}", self.unit).trim_end().to_owned()
    }
}

/// The middle of a text of this half width, moved into the drawing.
pub(super) fn inside(middle: f64, half: f64, width: f64) -> f64 {
    middle.min(width - half).max(half)
}

impl Scale {
    /// About `count` round numbers.
    pub fn ticks(&self, unit: Unit, count: usize) -> Ticks {
        match self.log {
            true => self.powers(unit, count.max(2)),
            false => self.steps(unit, count.max(2)),
        }
    }

    /// As many as can be written side by side under an axis from one pixel to another, in a
    /// drawing of this `width`.
    pub fn fitting(&self, unit: Unit, [from, to]: [f64; 2], width: f64, words: Words) -> Ticks {
        let fits = |ticks: &Ticks| {
            let places = ticks.at.iter().map(|(value, text)| {
                let middle = from + self.share(*value).unwrap_or(0.0) * (to - from);
                let half = words.width(&ticks.with_unit(text)) / 2.0;
                (inside(middle, half, width), half + words.size / 2.0)
            });
            let places: Vec<(f64, f64)> = places.collect();
            let mut pairs = places.windows(2);
            pairs.all(|pair| pair[0].0 + pair[0].1 <= pair[1].0 - pair[1].1)
        };
        let counts = (2..=11).rev().map(|count| self.ticks(unit, count));
        let mut all = counts.filter(fits);
        all.next().unwrap_or_else(|| {
            let mut one = self.ticks(unit, 2);
            one.at.truncate(1);
            one
        })
    }

    fn steps(&self, unit: Unit, count: usize) -> Ticks {
        let most = self.high.abs().max(self.low.abs());
        let (name, size) = unit.of(most);
        let step = round((self.high - self.low) / size / count as f64).max(self.least / size);
        let first = (self.low / size / step - 1e-9).ceil();
        let indices = (0..=2 * count).map(|index| first + index as f64);
        let values = indices.map(|index| index * step);
        let values = values.take_while(|value| (*value - step * 1e-9) * size <= self.high);
        let at = values.map(|value| (value * size, unit::plain(value, step, most / size)));
        Ticks {
            at: at.collect(),
            unit: name,
        }
    }

    /// Powers of 10, or of 2 for bytes; of a short axis some numbers between them.
    fn powers(&self, unit: Unit, count: usize) -> Ticks {
        let base: f64 = if unit == Unit::Bytes { 2.0 } else { 10.0 };
        let power = |value: f64| value.ln() / base.ln();
        let (first, last) = (power(self.low).ceil(), power(self.high).floor());
        let stride = ((last - first) / count as f64).ceil().max(1.0);
        let powers = (0..=count).map(|index| first + index as f64 * stride);
        let powers = powers.take_while(|power| *power <= last + 1e-9);
        let mut at: Vec<f64> = powers.map(|power| base.powf(power)).collect();
        if base == 10.0 && last - first < 2.0 {
            let decades = (0..4).map(|index| 10f64.powf(first - 1.0 + f64::from(index)));
            at = decades.flat_map(|d| [d, 2.0 * d, 5.0 * d]).collect();
            at.retain(|value| (self.low..=self.high).contains(value));
        }
        if at.len() < 2 {
            return self.steps(unit, count / 2);
        }
        Ticks {
            at: at.iter().map(|v| (*v, unit.tick(*v))).collect(),
            unit: "",
        }
    }
}

/// 1, 2 or 5 times a power of ten, near `step`.
fn round(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter();
    let fits = times.map(|times| times * power).find(|s| *s >= step * 0.75);
    fits.filter(|step| step.is_normal()).unwrap_or(1.0)
}
