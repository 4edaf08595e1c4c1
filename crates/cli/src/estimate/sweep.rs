//! The peak over the batch, and the largest batch that fits.

use anyhow::Result;
use leanburn_memory::{Budget, Bytes};
use leanburn_train::TrainError;
use leanburn_train::task::Builds;
use serde_json::json;

use crate::subject::Subject;

/// Predicted peaks.
pub struct Sweep {
    title: String,
    points: Vec<Point>,
    /// `None` where there is no budget; 0 where not even the first fits.
    largest: Option<usize>,
    verdict: Option<String>,
}

/// A batch; one that the backend cannot address has no sizes.
struct Point {
    batch: usize,
    peak: Option<Bytes>,
    needed: Option<Bytes>,
    fits: Option<bool>,
}

impl Point {
    fn of<T: Builds>(subject: &Subject<T>, batch: usize, budget: Option<&Budget>) -> Result<Self> {
        let changed = subject.changed(|recipe| recipe.train.batch = batch);
        let prediction = match changed {
            Ok(changed) => changed.predict()?,
            Err(error) if is_wrong_use(&error) => {
                return Ok(Self {
                    batch,
                    peak: None,
                    needed: None,
                    fits: budget.map(|_| false),
                });
            }
            Err(error) => return Err(error),
        };
        Ok(Self {
            batch,
            peak: Some(prediction.peak),
            needed: Some(prediction.needed()),
            fits: budget.map(|budget| budget.holds(&prediction).is_sure()),
        })
    }
}

fn is_wrong_use(error: &anyhow::Error) -> bool {
    let cause = error.downcast_ref::<TrainError>();
    cause.is_some_and(TrainError::is_wrong_use)
}

impl Sweep {
    /// Doubles the batch from the first to the last, then searches where the budget ends.
    pub fn of<T: Builds>(
        subject: &Subject<T>,
        [from, to]: [usize; 2],
        budget: Option<&Budget>,
    ) -> Result<Self> {
        let point = |batch: usize| Point::of(subject, batch, budget);
        let doubling = std::iter::successors(Some(from), |batch| batch.checked_mul(2));
        let doubling = doubling.take_while(|batch| *batch < to).chain([to]);
        let mut points = Vec::new();
        for batch in doubling {
            points.push(point(batch)?);
            // Larger ones cannot be addressed either.
            if points
                .last()
                .is_some_and(|point: &Point| point.peak.is_none())
            {
                break;
            }
        }
        let mut largest = None;
        if budget.is_some() {
            let fails = |point: &&Point| point.fits == Some(false);
            let failing = points.iter().filter(fails).map(|point| point.batch);
            let mut exceeds = failing.min().unwrap_or(to.saturating_add(1));
            let fitting = points.iter().filter(|point| point.fits == Some(true));
            let fitting = fitting
                .map(|point| point.batch)
                .filter(|batch| *batch < exceeds);
            let mut fits = fitting.max().unwrap_or(0);
            while fits >= from && exceeds - fits > 1 {
                let between = point(fits + (exceeds - fits) / 2)?;
                match between.fits {
                    Some(true) => fits = between.batch,
                    _ => exceeds = between.batch,
                }
                points.push(between);
            }
            largest = Some(fits);
            points.sort_by_key(|point| point.batch);
        }
        let last = points.iter().rfind(|point| Some(point.batch) == largest);
        let needed = last.and_then(|point| point.needed);
        Ok(Self {
            title: subject.title(),
            verdict: budget
                .zip(needed)
                .map(|(budget, needed)| budget.verdict(budget.fits(needed))),
            largest,
            points,
        })
    }

    /// Whether there is a budget and no batch that fits it.
    pub fn fits_nowhere(&self) -> bool {
        self.largest == Some(0)
    }

    pub fn render(&self, as_json: bool) -> String {
        match as_json {
            true => self.json(),
            false => self.text(),
        }
    }

    fn json(&self) -> String {
        let points = self.points.iter().map(|point| {
            let [peak, needed] = [point.peak, point.needed].map(|bytes| bytes.map(|bytes| bytes.0));
            json!({
                "batch": point.batch, "peak": { "predicted": peak }, "needed": needed, "fits": point.fits,
            })
        });
        let points: Vec<_> = points.collect();
        format!(
            "{}\n",
            json!({ "largest_batch": self.largest, "points": points })
        )
    }

    fn text(&self) -> String {
        let mut text = format!("{}\n\n", self.title);
        let peaks = self.points.iter().filter_map(|point| point.needed);
        let most = peaks.map(|peak| peak.0).max().unwrap_or(1).max(1);
        for point in &self.points {
            // What is compared with the memory: the allocator counts.
            let peak = point.needed.unwrap_or_default();
            let width = (u128::from(peak.0) * 40 / u128::from(most)) as usize;
            let told = point.needed.map_or("-".into(), |needed| needed.to_string());
            let fits = match (point.peak, point.fits) {
                (None, _) => "more than the backend addresses",
                (_, Some(true)) => "fits",
                (_, Some(false)) => "does not fit",
                (_, None) => "",
            };
            let bar = "#".repeat(width.max(1));
            let line = format!("batch {:>6}  {told:>10}  {bar:<40}  {fits}", point.batch);
            text += &format!("{}\n", line.trim_end());
        }
        match (self.largest, &self.verdict) {
            (Some(0), _) => text += "\nnot even the smallest batch fits\n",
            (Some(batch), Some(verdict)) => {
                text += &format!("\nlargest batch that fits: {batch} ({verdict})\n");
            }
            _ => {}
        }
        text
    }
}
