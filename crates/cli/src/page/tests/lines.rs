use super::layout::{checked, says, texts};
use crate::page::{Level, Lines, Mark, Series, Unit};

pub(super) const NAN: f64 = f64::NAN;

fn series(points: &[(f64, f64)]) -> Series {
    Series {
        name: "flex".into(),
        points: points.to_vec(),
    }
}

pub(super) fn chart(points: &[(f64, f64)]) -> Lines {
    Lines {
        title: "Loss of the run".into(),
        x: "update".into(),
        y: "loss".into(),
        series: vec![series(points)],
        ..Lines::default()
    }
}

pub(super) fn drawn(lines: &Lines) -> String {
    checked(|width| lines.svg(width))
}

/// The number of lines, and of dots.
fn marks(svg: &str, color: &str) -> (usize, usize) {
    let stroke = format!("stroke=\"{color}\"");
    let lines = svg.split("<polyline").filter(|line| line.contains(&stroke));
    (lines.count(), svg.matches("<circle").count())
}

const BLUE: &str = "#0B5394";

#[test]
fn a_line_has_gaps_where_it_is_not_finite() {
    let points: Vec<(f64, f64)> = (0..60)
        .map(|at| (f64::from(at), if at % 20 == 10 { NAN } else { 2.0 }))
        .collect();
    let svg = drawn(&chart(&points));
    assert_eq!(marks(&svg, BLUE), (4, 0));
    assert!(says(&svg, "Not drawn: 3 values not finite."));
    assert!(says(&svg, "update") && says(&svg, "loss") && says(&svg, "20"));
    assert!(svg.contains("flex: 60 points, first 2, last 2, least 2, most 2"));
}

#[test]
fn a_point_alone_is_a_dot() {
    let svg = drawn(&chart(&[(3.0, 2.5)]));
    assert!(marks(&svg, BLUE).1 >= 1);
    // Whole numbers have no ticks between them.
    assert!(says(&svg, "3") && !texts(&svg).iter().any(|(_, text)| *text == "3.5"));
}

#[test]
fn bytes_and_seconds_have_units() {
    let mut lines = chart(&[(0.0, 1e9), (1.0, 6e9)]);
    lines.unit = Unit::Bytes;
    assert!(says(&drawn(&lines), "loss, GiB"));
    lines.log = true;
    assert!(says(&drawn(&lines), "loss (log scale)") && says(&drawn(&lines), "2 GiB"));
    let mut lines = chart(&[(0.0, 0.01), (1.0, 0.06)]);
    lines.unit = Unit::Seconds;
    assert!(says(&drawn(&lines), "loss, ms") && says(&drawn(&lines), "20"));
}

#[test]
fn many_points_are_a_mean_and_what_they_span() {
    let mut points: Vec<(f64, f64)> = (0..100_000)
        .map(|at| (f64::from(at), f64::from(at % 7)))
        .collect();
    points[44_444].1 = 100.0;
    points[55_555].1 = NAN;
    let lines = chart(&points);
    let svg = drawn(&lines);
    assert!(svg.len() < 60_000, "{}", svg.len());
    assert!(
        says(
            &svg,
            "The line is a mean, the shade goes from the least to the largest."
        ) || svg.contains("shade goes from the least to the largest.")
    );
    // The largest point is the highest of the drawing's area.
    let area = svg.split("<polygon").nth(1).unwrap();
    let area = area
        .split("points=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let heights = area
        .split_whitespace()
        .filter_map(|point| point.split_once(','));
    let heights: Vec<i32> = heights.filter_map(|(_, y)| y.parse().ok()).collect();
    let highest = heights.iter().min().unwrap();
    assert_eq!(heights.iter().filter(|y| *y == highest).count(), 1);
}

#[test]
fn lines_differ_in_more_than_colour() {
    let mut lines = chart(&[(0.0, 1.0), (1.0, 2.0)]);
    lines.series = vec![series(&[(0.0, 1.0), (9.0, 5.0)]); 8];
    for (index, series) in lines.series.iter_mut().enumerate() {
        series.name = format!("series {index}");
        series.points[1].1 += index as f64;
    }
    let svg = drawn(&lines);
    assert!((0..8).all(|index| says(&svg, &format!("series {index}"))));
    // The first is whole, the second is dashed.
    assert_eq!(marks(&svg, BLUE).0, 4);
    assert!(marks(&svg, "#C85500").0 > 20);
}

#[test]
fn marks_with_one_label_are_one_entry() {
    let mut lines = chart(&[(0.0, 1.0), (50.0, 2.0)]);
    let mark = |x: f64, label: &str| Mark {
        x,
        label: label.into(),
    };
    lines.marks = vec![
        mark(9.0, "skipped step"),
        mark(3.0, "skipped step"),
        mark(60.0, "saved"),
        mark(NAN, "never"),
    ];
    let svg = drawn(&lines);
    assert!(says(&svg, "skipped step ×2") && says(&svg, "saved") && !says(&svg, "never"));
    assert!(svg.contains("skipped step: 2"));
    lines.marks = (0..10_000)
        .map(|at| mark(f64::from(at) / 200.0, "all"))
        .collect();
    assert!(drawn(&lines).len() < 120_000);
}

#[test]
fn levels_are_named_with_their_number() {
    let mut lines = chart(&[(0.0, 1e9), (1.0, 6e9), (2.0, 5e9)]);
    lines.unit = Unit::Bytes;
    let level = |y: f64, label: &str| Level {
        y,
        label: label.into(),
    };
    lines.levels = vec![
        level(6.2e9, "predicted peak"),
        level(8e9, "budget"),
        level(80e9, "device"),
        level(NAN, "none"),
    ];
    let svg = drawn(&lines);
    for text in [
        "predicted peak 5.77 GiB",
        "budget 7.45 GiB",
        "device 74.5 GiB is above the scale.",
    ] {
        assert!(says(&svg, text), "{text}");
    }
    assert!(svg.contains("budget: 7.45 GiB"));
}
