//! The comparison as a page.

use leanburn_memory::table::NOT_REPORTED;
use leanburn_memory::{Bytes, Measurement};
use leanburn_train::environment;

use super::comparison::{Comparison, Side, largest_difference};
use crate::child::Ran;
use crate::page::{Bar, Bars, Block, Cell, Lines, Page, Section, Series, Unit};
use crate::page::{memory, over_updates::chart};
use crate::timeline;

/// Everything of it.
pub fn page(comparison: &Comparison) -> Page {
    let names: Vec<String> = comparison
        .sides
        .iter()
        .map(|side| side.backend.to_string())
        .collect();
    Page {
        title: format!("{} on {}", comparison.title, names.join(", ")),
        lead: format!(
            "{} updates of batch {} x {} on each backend, with the same weights, data and seed.",
            comparison.steps, comparison.batch, comparison.accumulate
        ),
        sections: vec![
            outcome(comparison),
            rows(comparison),
            step(comparison),
            losses(comparison),
            time(comparison),
            facts(comparison),
        ],
    }
}

/// The peak of every backend by row, as predicted and as measured.
pub fn bars(comparison: &Comparison) -> Bars {
    let bars = comparison.sides.iter().flat_map(|side| {
        let bar = |name: &str, step: Result<Measurement, String>| Bar {
            group: side.backend.to_string(),
            name: name.into(),
            peak: step.as_ref().ok().map(|step| step.peak),
            rows: step.map(|step| step.rows),
        };
        let [predicted, measured] = side.steps();
        let measured = match &side.result {
            Ok(_) => measured.ok_or_else(|| NOT_REPORTED.to_owned()),
            Err(failure) => Err(failure.to_string()),
        };
        let predicted = predicted.ok_or_else(|| "cannot be predicted".to_owned());
        [bar("predicted", predicted), bar("measured", measured)]
    });
    Bars {
        title: "Peak of a step, by row".into(),
        bars: bars.collect(),
    }
}

fn section(heading: &str, note: &str, body: Vec<Block>) -> Section {
    Section {
        heading: heading.into(),
        note: (!note.is_empty()).then(|| note.into()),
        body,
    }
}

fn outcome(comparison: &Comparison) -> Section {
    let reference = comparison.reference();
    let head = [
        "backend",
        "dtype",
        "peak",
        "reserved",
        "first update",
        "median update",
        "largest loss difference",
    ];
    let rows = comparison.sides.iter().map(|side| {
        let backend = Cell::Text(side.backend.to_string());
        match &side.result {
            Err(failure) => vec![backend, Cell::Error(failure.to_string())],
            Ok(ran) => vec![
                backend,
                Cell::Text(ran.precision.clone()),
                number(side.steps()[1].as_ref().map(|step| step.peak)),
                number(ran.reserved.map(Bytes)),
                number(ran.seconds.first().map(|s| format!("{s:.2} s"))),
                number(ran.seconds_per_step.map(|s| format!("{s:.3} s"))),
                number(difference(ran, reference)),
            ],
        }
    });
    let table = Block::Table {
        head: head.map(String::from).to_vec(),
        rows: rows.collect(),
    };
    let note = "Reserved is what the pool holds, in use or not; a heap does not tell. Losses are compared with those of \
                the first backend that ran.";
    let failed = comparison.sides.iter().filter_map(|side| {
        let failure = side.result.as_ref().err()?;
        Some(Block::Warning(format!(
            "{} failed: {failure}",
            side.backend
        )))
    });
    let body = std::iter::once(table).chain(failed);
    section("Outcome", note, body.collect())
}

fn difference(ran: &Ran, reference: Option<&Ran>) -> Option<String> {
    Some(format!("{:.1e}", largest_difference(ran, reference?)?))
}

fn number(told: Option<impl ToString>) -> Cell {
    told.map_or_else(
        || Cell::Text(NOT_REPORTED.into()),
        |told| Cell::Number(told.to_string()),
    )
}

fn rows(comparison: &Comparison) -> Section {
    let sides = comparison.sides.iter().filter(|side| side.result.is_ok());
    let sides = sides.map(|side| (side.backend.to_string(), side.steps()));
    let table = memory::table(&sides.collect::<Vec<_>>());
    section(
        "Memory by row",
        memory::NOTE,
        vec![Block::Bars(bars(comparison)), table],
    )
}

fn step(comparison: &Comparison) -> Section {
    let mut body = vec![Block::Lines(Lines {
        title: "Bytes in use at the marks of a step, measured".into(),
        x: "mark".into(),
        y: "in use".into(),
        unit: Unit::Bytes,
        series: series(comparison, |ran| {
            let points = ran.points.iter().enumerate();
            points
                .map(|(n, point)| (n as f64, point.live as f64))
                .collect()
        }),
        ..Lines::default()
    })];
    body.extend(comparison.sides.iter().filter_map(drawing));
    let note = "A mark is set before the step, between blocks of the forward, again in the backward, and after the \
                update. The drawings follow every operation, as predicted.";
    section("One step", note, body)
}

fn drawing(side: &Side) -> Option<Block> {
    let title = format!("{}: {}", side.backend, side.title);
    let drawings = timeline::draw(side.traced.as_ref()?, &title, None).ok()?;
    Some(Block::Svg {
        label: format!("Predicted bytes over the operations of a step, {title}"),
        wide: drawings.wide,
        narrow: Some(drawings.narrow),
    })
}

fn losses(comparison: &Comparison) -> Section {
    let losses = chart(
        "Loss",
        "loss",
        Unit::Number,
        series(comparison, |ran| {
            ran.losses
                .iter()
                .enumerate()
                .map(|(n, loss)| (n as f64 + 1.0, loss.unwrap_or(f64::NAN)))
                .collect()
        }),
    );
    section("Loss", "", vec![Block::Lines(losses)])
}

fn time(comparison: &Comparison) -> Section {
    let mut seconds = chart(
        "Seconds of an update",
        "seconds",
        Unit::Seconds,
        series(comparison, |ran| {
            ran.seconds
                .iter()
                .enumerate()
                .map(|(n, seconds)| (n as f64 + 1.0, *seconds))
                .collect()
        }),
    );
    seconds.log = true;
    let note = "The first update of a GPU backend compiles and tunes kernels. Times of one machine compare with each \
                other only.";
    section("Time", note, vec![Block::Lines(seconds)])
}

fn series(comparison: &Comparison, points: impl Fn(&Ran) -> Vec<(f64, f64)>) -> Vec<Series> {
    let ran = comparison
        .sides
        .iter()
        .filter_map(|side| Some((side.backend, side.result.as_ref().ok()?)));
    let series = ran.map(|(backend, ran)| Series {
        name: backend.to_string(),
        points: points(ran),
    });
    series.collect()
}

fn facts(comparison: &Comparison) -> Section {
    let mut facts = environment(None);
    for side in &comparison.sides {
        if let Ok(Ran {
            device: Some(device),
            driver,
            ..
        }) = &side.result
        {
            let driver = driver
                .as_ref()
                .map_or(String::new(), |driver| format!(", driver {driver}"));
            facts.push((side.backend.to_string(), format!("{device}{driver}")));
        }
    }
    section("Environment", "", vec![Block::Facts(facts)])
}

#[cfg(test)]
mod tests {
    use super::super::comparison::tests::comparison;
    use super::*;

    #[test]
    fn a_failure_stands_on_the_page_and_nothing_is_asked_for() {
        let html = page(&comparison()).html();
        assert!(html.contains("no NVIDIA driver"));
        assert!(html.len() < 1 << 20);
        let rest = html.replace("http://www.w3.org/2000/svg", "");
        for outside in ["http://", "https://", "<script", "@import", "url("] {
            assert!(!rest.contains(outside), "{outside}");
        }
        let svg = bars(&comparison()).svg(1200);
        assert!(svg.starts_with("<svg") && svg.contains("flex"));
    }
}
