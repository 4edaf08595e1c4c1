//! Broken lines: plotters draws whole ones only.

use super::canvas::At;

/// So many dashes at most, so that a line that goes up and down stays a small drawing.
const MOST: f64 = 400.0;

/// The pieces of a line that are drawn: on for the first length of `pattern`, off for the second,
/// and so on. An empty pattern is a whole line.
pub(super) fn dashes(line: &[At], pattern: &[f64]) -> Vec<Vec<At>> {
    if pattern.is_empty() || line.len() < 2 {
        return vec![line.to_vec()];
    }
    let long: f64 = line.windows(2).map(|pair| distance(pair[0], pair[1])).sum();
    let period: f64 = pattern.iter().sum();
    let pairs = (pattern.len() / 2).max(1) as f64;
    // Only the dashes become longer: a longer gap could hide a peak.
    let longer = (long * pairs / MOST - period).max(0.0) / pairs;
    let on = |index: usize| index.is_multiple_of(2);
    let length =
        |index: usize| pattern[index % pattern.len()] + if on(index) { longer } else { 0.0 };
    let (mut index, mut left) = (0, length(0));
    let mut dashes = vec![vec![line[0]]];
    for pair in line.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        let mut rest = distance(from, to);
        while rest > left {
            let share = left / rest;
            from = (
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            );
            rest -= left;
            match (on(index), dashes.last_mut()) {
                (true, Some(dash)) => dash.push(from),
                _ => dashes.push(vec![from]),
            }
            index += 1;
            left = length(index).max(0.5);
        }
        left -= rest;
        if let (true, Some(dash)) = (on(index), dashes.last_mut()) {
            dash.push(to);
        }
    }
    dashes
}

fn distance(a: At, b: At) -> f64 {
    (a.0 - b.0).hypot(a.1 - b.1)
}
