use leanburn_memory::{Bytes, Ledger, Row};

use super::layout::{check, checked, says};
use crate::page::{Bar, Bars};

fn bar(name: &str, rows: Result<Ledger, String>) -> Bar {
    Bar {
        group: "flex".into(),
        name: name.into(),
        rows,
        peak: None,
    }
}

fn ledger(bytes: u64) -> Ledger {
    let rows = Row::ALL.into_iter();
    rows.fold(Ledger::default(), |all, row| all.with(row, Bytes(bytes)))
}

fn bars(bars: Vec<Bar>) -> Bars {
    Bars {
        title: "peak of a step".into(),
        bars,
    }
}

#[test]
fn every_bar_has_its_name_rows_and_total() {
    let svg = checked(|width| {
        let measured = bar("measured", Ok(ledger(700 << 20)));
        bars(vec![bar("predicted", Ok(ledger(512 << 20))), measured]).svg(width)
    });
    for text in [
        "peak of a step",
        "flex, predicted",
        "4.50 GiB",
        "6.15 GiB",
        "2 GiB",
    ] {
        assert!(says(&svg, text), "{text}");
    }
    assert!(Row::ALL.into_iter().all(|row| says(&svg, row.name())));
    assert!(svg.contains("flex, predicted: 4.50 GiB (parameters 512.0 MiB, buffers"));
}

#[test]
fn a_row_that_is_not_reported_is_left_out() {
    let rows = Ledger::default().with(Row::Gradients, Bytes(3 << 20));
    let svg = checked(|width| bars(vec![bar("", Ok(rows.clone()))]).svg(width));
    let shown = Row::ALL.into_iter().filter(|row| says(&svg, row.name()));
    assert!(shown.eq([Row::Gradients]));
    assert!(says(&svg, "flex") && says(&svg, "3.0 MiB") && !says(&svg, "not told apart"));
}

#[test]
fn what_no_row_has_is_shown_as_such() {
    let mut one = bar("measured", Ok(ledger(1 << 30)));
    one.peak = Some(Bytes(12 << 30));
    let svg = checked(|width| bars(vec![one.clone()]).svg(width));
    assert!(says(&svg, "12.0 GiB") && says(&svg, "not told apart"));
    // Less than its rows is a slip of the meter: the rows are shown.
    one.peak = Some(Bytes(1));
    let svg = checked(|width| bars(vec![one.clone()]).svg(width));
    assert!(says(&svg, "9.00 GiB") && !says(&svg, "not told apart"));
}

#[test]
fn a_failure_says_why() {
    let reason = "no device & \"no\" driver <none> \u{1b}[0m in /a/very/long/path".repeat(3);
    let failed = bar("measured", Err(reason));
    for others in [vec![], vec![bar("predicted", Ok(ledger(1 << 30)))]] {
        let all = [others, vec![failed.clone()]].concat();
        let svg = checked(|width| bars(all.clone()).svg(width));
        assert!(svg.contains("failed: no device &amp; &quot;no&quot; driver &lt;none&gt;"));
        assert!(svg.contains("aria-label=\"peak of a step. "));
    }
}

#[test]
fn odd_bars_are_drawn() {
    let svg = checked(|width| bars(vec![]).svg(width));
    assert!(says(&svg, "nothing to draw"));
    let empty = bar("empty", Ok(Ledger::default()));
    let zero = bar("zero", Ok(ledger(0)));
    let svg = checked(|width| bars(vec![empty.clone(), zero.clone()]).svg(width));
    assert!(says(&svg, "no row reported") && says(&svg, "0 B"));
    let most = bar("most", Ok(ledger(u64::MAX)));
    let svg = checked(|width| bars(vec![most.clone(), zero.clone()]).svg(width));
    assert!(says(&svg, "16.0 EiB"));
    let long = Bar {
        group: "a backend with a name far too long for its place ".repeat(4),
        ..bar("x", Ok(ledger(1)))
    };
    checked(|width| bars(vec![long.clone(); 12]).svg(width));
    check(&bars(vec![most; 30]).svg(400));
}
