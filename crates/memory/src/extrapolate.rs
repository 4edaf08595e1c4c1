//! Two small steps, extended to a large batch: for models that no trace can see through.

use crate::record::{Point, Record};
use crate::{Bytes, Known};

/// A step that was run, with its batch.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Samples in it.
    pub batch: usize,
    /// What its marks saw.
    pub record: &'a Record,
    /// What is known of it without measuring.
    pub known: &'a Known,
}

impl Sample<'_> {
    /// Bytes at a mark as if nothing but the step were there: above what was in use at its start, on top of
    /// what is known to be its own.
    fn own(&self, bytes: u64) -> u64 {
        let start = self.record.points.first().map_or(0, |point| point.live);
        let Known {
            parameters,
            buffers,
            inputs,
            optimizer_state,
            accumulated,
            gradients: _,
        } = self.known;
        let known = [parameters, buffers, inputs, optimizer_state, accumulated];
        let known: u64 = known.into_iter().map(|bytes| bytes.0).sum();
        (known + bytes).saturating_sub(start)
    }
}

/// The step at another batch, every mark on the line through the same marks of two steps.
///
/// `None` where the batches are the same, or the steps passed different marks.
pub fn extrapolate([a, b]: [Sample; 2], batch: usize) -> Option<(Record, Known)> {
    let (points_a, points_b) = (&a.record.points, &b.record.points);
    let same = |(a, b): (&Point, &Point)| a.mark == b.mark;
    let alike = points_a.len() == points_b.len() && points_a.iter().zip(points_b).all(same);
    if a.batch == b.batch || !alike {
        return None;
    }
    let line = |from: u64, to: u64| {
        let [x, y, z] = [a.batch, b.batch, batch].map(|batch| batch as i128);
        let (from, to) = (i128::from(from), i128::from(to));
        u64::try_from(from + (to - from) * (z - x) / (y - x)).unwrap_or(0)
    };
    let point = |(one, two): (&Point, &Point)| Point {
        mark: one.mark,
        live: line(a.own(one.live), b.own(two.live)),
        peak: line(a.own(one.peak), b.own(two.peak)),
        passing: line(one.passing, two.passing),
    };
    let bytes = |from: Bytes, to: Bytes| Bytes(line(from.0, to.0));
    let record = Record {
        points: points_a.iter().zip(points_b).map(point).collect(),
        allocator: None,
    };
    let known = Known {
        inputs: bytes(a.known.inputs, b.known.inputs),
        ..*b.known
    };
    Some((record, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mark;

    fn record(batch: u64, marks: &[Mark]) -> Record {
        let point = |mark: &Mark| Point {
            mark: *mark,
            live: 100 + 7 * batch,
            peak: 200 + 11 * batch,
            passing: 3 * batch,
        };
        Record {
            points: marks.iter().map(point).collect(),
            allocator: None,
        }
    }

    #[test]
    fn marks_lie_on_lines() {
        let marks = [Mark::Start, Mark::Forward(0), Mark::ForwardEnd];
        let known = |batch: u64| Known {
            inputs: Bytes(12 * batch),
            ..Known::default()
        };
        let (one, two) = (record(1, &marks), record(2, &marks));
        let sample = |batch: usize, record, known| Sample {
            batch,
            record,
            known,
        };
        let (known_1, known_2) = (known(1), known(2));
        let at = [sample(1, &one, &known_1), sample(2, &two, &known_2)];
        let (record_64, known_64) = extrapolate(at, 64).unwrap();
        // The batch and nothing else is in use at the start, where these steps say 100 + 7 a sample.
        let expected = record(64, &marks).points.into_iter().map(|point| Point {
            live: 12 * 64,
            peak: point.peak - 100 - 7 * 64 + 12 * 64,
            ..point
        });
        assert_eq!(record_64.points, expected.collect::<Vec<_>>());
        assert_eq!(known_64.inputs, Bytes(12 * 64));

        // What else is in use does not count.
        let mut later = two.clone();
        for point in &mut later.points {
            (point.live, point.peak) = (point.live + 5000, point.peak + 5000);
        }
        let later = sample(2, &later, &known_2);
        assert_eq!(extrapolate([at[0], later], 64).unwrap().0, record_64);

        assert!(extrapolate([at[0], at[0]], 64).is_none());
        let other = record(2, &marks[..2]);
        assert!(extrapolate([at[0], sample(2, &other, &known_2)], 64).is_none());
    }
}
