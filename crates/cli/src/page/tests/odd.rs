use super::layout::says;
use super::lines::{NAN, chart, drawn};
use crate::page::{Lines, Unit};

#[test]
fn what_can_not_be_drawn_says_why() {
    for (points, log, why) in [
        (vec![], false, "nothing to draw: there are no points"),
        (
            vec![(0.0, NAN)],
            false,
            "nothing to draw: 1 value not finite",
        ),
        (
            vec![(NAN, 1.0), (f64::INFINITY, 1.0)],
            false,
            "nothing to draw: 2 values not finite",
        ),
        (
            vec![(0.0, 0.0)],
            true,
            "nothing to draw: 1 value not above 0, on a log scale",
        ),
    ] {
        let lines = Lines {
            log,
            ..chart(&points)
        };
        assert!(says(&drawn(&lines), why), "{why}");
        assert!(says(&lines.svg(1100), "Loss of the run"));
    }
    drawn(&Lines::default());
}

#[test]
fn odd_numbers_are_drawn() {
    let most = f64::MAX;
    let least = f64::from_bits(1);
    let odd: &[&[(f64, f64)]] = &[
        &[(0.0, 0.0), (1.0, 0.0)],
        &[(0.0, -3.0), (1.0, f64::INFINITY), (2.0, -5.5)],
        &[(0.0, -most), (1.0, most)],
        &[(-most, 1.0), (most, 2.0)],
        &[(0.0, least), (1.0, 2.0 * least)],
        &[(0.0, least), (1.0, most)],
        &[(1e15, 1.0), (1e15 + 1.0, 1.0)],
        &[(0.0, 1e6), (1.0, 1e6 + 1e-3)],
        &[(5.0, 1.0), (5.0, 7.0)],
        &[(9.0, 1.0), (2.0, 3.0), (4.0, NAN), (0.1, 0.001)],
        &[(0.0, 0.0), (1.0, 1e-9), (2.0, 1e7)],
        &[(0.0, 1.5), (1.0, 1.9)],
        &[(0.0, 1e300)],
    ];
    for points in odd {
        for log in [false, true] {
            for unit in [Unit::Number, Unit::Bytes, Unit::Seconds] {
                let lines = Lines {
                    log,
                    unit,
                    ..chart(points)
                };
                drawn(&lines);
            }
        }
    }
}
