pub(crate) mod layout;

use super::*;

use layout::{check, texts};

/// A step of `blocks` blocks: activations pile up, then gradients take their place.
fn step(blocks: usize) -> Vec<Point> {
    let operations = blocks * 6;
    let forward = (0..operations).map(|at| at as u64);
    let backward = forward.clone().rev();
    let kept = forward.map(|kept| (kept, 0));
    let released = backward.map(|kept| (kept, operations as u64 - kept));
    let point = |(kept, done): (u64, u64)| {
        let mut rows = [0; ROWS];
        rows[Row::Parameters as usize] = 90 << 20;
        rows[Row::Activations as usize] = kept * (20 << 20) / blocks as u64;
        rows[Row::Gradients as usize] = done * (15 << 20) / operations as u64;
        rows[Row::Temporaries as usize] = (kept % 6) << 19;
        Point { rows }
    };
    kept.chain(released).map(point).collect()
}

fn marks(blocks: usize) -> Vec<(usize, String)> {
    (0..blocks)
        .map(|b| (b * 6, format!("layer{b}.0")))
        .collect()
}

fn drawn(timeline: &Timeline<'_>) -> String {
    let narrow = timeline.narrow_svg().unwrap();
    assert!(narrow.starts_with("<svg width=\"900\""));
    check(&narrow);
    let svg = timeline.svg().unwrap();
    assert!(svg.starts_with("<svg width=\"1400\""));
    check(&svg);
    svg
}

fn plain(points: &[Point]) -> Timeline<'_> {
    Timeline {
        title: "one step",
        points,
        phases: &[],
        budget: None,
        marks: &[],
    }
}

#[test]
fn a_step_is_drawn_with_everything_on_it() {
    let (points, marks) = (step(40), marks(40));
    let phases = [
        (Phase::Forward, 0..240),
        (Phase::Backward, 240..478),
        (Phase::Update, 478..480),
    ];
    for budget in [150 << 20, 220 << 20, 8 << 30] {
        let svg = drawn(&Timeline {
            title: "ResNet <50> & \"more\"",
            phases: &phases,
            budget: Some(Bytes(budget)),
            marks: &marks,
            ..plain(&points)
        });
        for text in [
            "forward",
            "backward",
            "update",
            "operation",
            "live memory, MiB",
            "layer0.0",
        ] {
            assert!(
                texts(&svg).iter().any(|(_, other)| *other == text),
                "{text}"
            );
        }
        assert!(svg.contains("ResNet &lt;50&gt; &amp; &quot;more&quot;"));
        assert!(svg.contains(&format!("budget {}", Bytes(budget))));
        assert_eq!(svg.contains("above the scale"), budget == 8 << 30);
        assert!(svg.contains(
            &format!("peak {} (", plain(&points).points.iter().map(Point::total).max().unwrap())
        ));
        let labels = texts(&svg)
            .iter()
            .filter(|(_, text)| text.starts_with("layer"))
            .count();
        assert!((4..=12).contains(&labels), "{labels}");
    }
}

#[test]
fn only_rows_that_occur_are_in_the_legend() {
    let points = step(3);
    let svg = drawn(&plain(&points));
    let names: Vec<&str> = texts(&svg).into_iter().map(|(_, text)| text).collect();
    let shown = Row::ALL
        .into_iter()
        .filter(|row| names.contains(&row.name()));
    let rows = [
        Row::Parameters,
        Row::Activations,
        Row::Gradients,
        Row::Temporaries,
    ];
    assert!(shown.eq(rows));
    let all = [Point {
        rows: [1 << 30; ROWS],
    }];
    let svg = drawn(&plain(&all));
    assert!(Row::ALL.into_iter().all(|row| svg.contains(row.name())));
    assert!(svg.contains("peak 9.00 GiB") && svg.contains("live memory, GiB"));
}

#[test]
fn the_peak_is_labelled_wherever_it_is() {
    for operations in [1, 2, 7, 999] {
        for at in [0, operations / 3, operations / 2, operations - 1] {
            for budget in [
                0,
                1,
                500,
                999,
                1000,
                1001,
                1050,
                1200,
                2999,
                3000,
                3001,
                u64::MAX,
            ] {
                let mut points = vec![Point::default(); operations];
                points[at].rows[Row::Framework as usize] = 1000 << 20;
                let budget = Some(Bytes(budget.saturating_mul(1 << 20)));
                let phases = [(Phase::Backward, 0..operations)];
                let svg = drawn(&Timeline {
                    budget,
                    phases: &phases,
                    ..plain(&points)
                });
                assert!(svg.contains("peak 1000.0 MiB (backward)"));
            }
        }
    }
}

#[test]
fn phases_of_many_micro_batches_do_not_meet() {
    let points = step(64);
    for micro in [1, 2, 4, 8, 16, 64] {
        let each = points.len() / micro / 2;
        let phase = |index: usize| match index % 2 {
            0 => (Phase::Forward, index * each..(index + 1) * each),
            _ => (Phase::Backward, index * each..(index + 1) * each),
        };
        let mut phases: Vec<_> = (0..2 * micro).map(phase).collect();
        phases.push((Phase::Update, points.len() - 1..points.len()));
        drawn(&Timeline {
            phases: &phases,
            ..plain(&points)
        });
    }
}

#[test]
fn odd_input_is_drawn_or_refused() {
    assert_eq!(plain(&[]).svg(), Err(TimelineError::Empty));
    drawn(&plain(&[Point::default()]));
    let most = [Point {
        rows: [u64::MAX; ROWS],
    }; 2];
    drawn(&plain(&most));
    let beyond = [
        (1, "a block with a name far too long for its place".into()),
        (900, "out".into()),
    ];
    let empty = [(Phase::Forward, 0..0), (Phase::Backward, 1..700)];
    let points = step(1);
    drawn(&Timeline {
        title: &"no room\n".repeat(40),
        marks: &beyond,
        phases: &empty,
        ..plain(&points)
    });
}

#[test]
fn a_long_step_stays_a_small_drawing() {
    let points = step(20_000);
    assert!(drawn(&plain(&points)).len() < 300_000);
}
