//! The peak over the batch, and the largest batch that fits.

use anyhow::Result;
use leanburn_memory::Bytes;
use leanburn_train::task::Builds;
use serde_json::json;

use super::budget::Budget;
use super::recipe::Subject;

/// Predicted peaks.
pub struct Sweep {
    title: String,
    points: Vec<Point>,
    /// `None` where there is no budget; 0 where not even the first fits.
    largest: Option<usize>,
    verdict: Option<String>,
}

struct Point {
    batch: usize,
    peak: Bytes,
    needed: Bytes,
    fits: Option<bool>,
}

impl Sweep {
    /// Doubles the batch from the first to the last, then searches where the budget ends.
    pub fn of<T: Builds>(
        subject: &Subject<T>,
        [from, to]: [usize; 2],
        budget: Option<&Budget>,
    ) -> Result<Self> {
        let point = |batch: usize| -> Result<Point> {
            let changed = subject.changed(|recipe| recipe.train.batch = batch)?;
            let prediction = changed.predict()?;
            let needed = prediction.needed();
            Ok(Point {
                batch,
                peak: prediction.peak,
                needed,
                fits: budget.map(|budget| budget.fits(needed).is_sure()),
            })
        };
        let doubling = std::iter::successors(Some(from), |batch| batch.checked_mul(2));
        let mut batches: Vec<usize> = doubling.take_while(|batch| *batch < to).collect();
        batches.push(to);
        let mut points = batches.into_iter().map(point).collect::<Result<Vec<_>>>()?;

        let mut largest = None;
        if budget.is_some() {
            let fitting = points.iter().filter(|point| point.fits == Some(true));
            let mut fits = fitting.map(|point| point.batch).max().unwrap_or(0);
            let over = points.iter().filter(|point| point.fits == Some(false));
            let mut exceeds = over.map(|point| point.batch).min().unwrap_or(to + 1);
            while exceeds - fits > 1 && fits >= from {
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
        Ok(Self {
            title: subject.title(),
            verdict: budget
                .zip(last)
                .map(|(budget, point)| budget.verdict(point.needed)),
            largest,
            points,
        })
    }

    pub fn print(&self, as_json: bool) {
        if as_json {
            let points = self.points.iter().map(|point| {
                json!({ "batch": point.batch, "peak": { "predicted": point.peak.0 }, "fits": point.fits })
            });
            let points: Vec<_> = points.collect();
            println!(
                "{}",
                json!({ "largest_batch": self.largest, "points": points })
            );
            return;
        }
        println!("{}\n", self.title);
        let most = self
            .points
            .iter()
            .map(|point| point.peak.0)
            .max()
            .unwrap_or(1)
            .max(1);
        for point in &self.points {
            let width = (point.peak.0 as u128 * 40 / most as u128) as usize;
            let fits = match point.fits {
                Some(true) => "fits",
                Some(false) => "does not fit",
                None => "",
            };
            let line = format!(
                "batch {:>6}  {:>10}  {:<40}  {fits}",
                point.batch,
                point.peak.to_string(),
                "#".repeat(width.max(1)),
            );
            println!("{}", line.trim_end());
        }
        match (self.largest, &self.verdict) {
            (Some(0), _) => println!("\nnot even the smallest batch fits"),
            (Some(batch), Some(verdict)) => {
                println!("\nlargest batch that fits: {batch} ({verdict})")
            }
            _ => {}
        }
    }
}
