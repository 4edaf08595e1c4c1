//! The page of a run.

use serde_json::Value;

use super::run::{Run, Update};
use crate::page::{Bar, Bars, Block, Cell, Level, Lines, Mark, Page, Section, Series, Unit};
use crate::page::{memory, over_updates::chart};

/// Everything that the folder tells.
pub fn page(folder: &str, run: &Run) -> Page {
    let mut sections = vec![of_memory(run), loss(run), throughput(run)];
    sections.extend(loss_scale(run));
    sections.extend(epochs(run));
    sections.push(section("Recipe", vec![Block::Pre(run.recipe.clone())]));
    sections.extend(environment(run));
    Page {
        title: format!("Training run {folder}"),
        lead: lead(run),
        sections,
    }
}

fn section(heading: &str, body: Vec<Block>) -> Section {
    Section {
        heading: heading.into(),
        note: None,
        body,
    }
}

fn lead(run: &Run) -> String {
    let skipped = run
        .updates
        .iter()
        .filter(|update| update.outcome != "applied")
        .count();
    let updates = format!("{} updates, {skipped} of them skipped", run.updates.len());
    let Some(report) = &run.report else {
        return match run.damaged.is_empty() {
            true => format!("{updates}. The run did not come to its end."),
            false => format!("{updates}. Some of its files are damaged."),
        };
    };
    let told = |key: &str| report[key].as_str().unwrap_or("?").to_owned();
    let [model, precision, data, backend] = ["model", "precision", "data", "backend"].map(told);
    let seconds = report["seconds"].as_f64().unwrap_or(f64::NAN);
    let ended = match report["interrupted"].as_bool() {
        Some(true) => ", interrupted",
        _ => "",
    };
    format!(
        "{model} in {precision} on {data}, computed on {backend}: {updates} in {seconds:.0} s{ended}."
    )
}

fn of_memory(run: &Run) -> Section {
    let [predicted, measured] = run.memory();
    let bytes = |name: &str, of: fn(&Update) -> Option<u64>| {
        let points = run.updates.iter();
        let points = points.map(|update| {
            (
                update.update,
                of(update).map_or(f64::NAN, |bytes| bytes as f64),
            )
        });
        Series {
            name: name.into(),
            points: points.collect(),
        }
    };
    let mut over_updates = chart(
        "Memory over the run",
        "memory",
        Unit::Bytes,
        vec![
            bytes("in use after the update", |update| update.in_use_bytes),
            bytes("highest peak so far", |update| update.peak_bytes),
        ],
    );
    over_updates
        .levels
        .extend(predicted.as_ref().map(|step| Level {
            y: step.peak.0 as f64,
            label: "predicted peak".into(),
        }));
    over_updates.marks = skipped(run);
    let mut body: Vec<Block> = run.damaged.iter().cloned().map(Block::Warning).collect();
    body.push(Block::Lines(over_updates));
    if run.report.is_none() {
        let note = "The rows are written at the end of a run, and this one has none.";
        body.push(Block::Note(note.into()));
    }
    if predicted.is_some() || measured.is_some() {
        let bar = |name: &str, step: &Option<leanburn_memory::Measurement>| Bar {
            group: String::new(),
            name: name.into(),
            peak: step.as_ref().map(|step| step.peak),
            rows: step
                .as_ref()
                .map(|step| step.rows.clone())
                .ok_or_else(|| "not reported".into()),
        };
        body.push(Block::Bars(Bars {
            title: "Peak of the most demanding step, by row".into(),
            bars: vec![bar("predicted", &predicted), bar("measured", &measured)],
        }));
        body.push(memory::table(&[(String::new(), [predicted, measured])]));
    }
    Section {
        heading: "Memory".into(),
        note: Some(memory::NOTE.into()),
        body,
    }
}

/// A mark for every update that was not applied.
fn skipped(run: &Run) -> Vec<Mark> {
    let skipped = run
        .updates
        .iter()
        .filter(|update| update.outcome != "applied");
    let mark = |update: &Update| Mark {
        x: update.update,
        label: format!("skipped: {}", update.outcome),
    };
    skipped.map(mark).collect()
}

fn points(run: &Run, of: fn(&Update) -> f64) -> Vec<(f64, f64)> {
    run.updates
        .iter()
        .map(|update| (update.update, of(update)))
        .collect()
}

fn one(name: &str, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.into(),
        points,
    }
}

fn loss(run: &Run) -> Section {
    let mut series = vec![one("training", points(run, |update| update.loss))];
    let validation = run.epochs.over_updates("val_loss");
    if !validation.is_empty() {
        series.push(one("validation", validation));
    }
    let losses = Lines {
        marks: skipped(run),
        ..chart("Loss", "loss", Unit::Number, series)
    };
    let norm = one("norm", points(run, |update| update.norm));
    let norm = chart(
        "Gradient norm before clipping",
        "norm",
        Unit::Number,
        vec![norm],
    );
    section("Loss", vec![Block::Lines(losses), Block::Lines(norm)])
}

fn throughput(run: &Run) -> Section {
    let speed = points(run, |update| update.items / update.seconds);
    let speed = chart(
        "Items per second",
        "items/s",
        Unit::Number,
        vec![one("speed", speed)],
    );
    section("Throughput", vec![Block::Lines(speed)])
}

/// Nothing where it never was anything but 1.
fn loss_scale(run: &Run) -> Option<Section> {
    run.updates.iter().find(|update| update.loss_scale != 1.0)?;
    let scale = Lines {
        log: true,
        marks: skipped(run),
        ..chart(
            "Loss scale",
            "scale",
            Unit::Number,
            vec![one("scale", points(run, |update| update.loss_scale))],
        )
    };
    Some(section("Loss scale", vec![Block::Lines(scale)]))
}

fn epochs(run: &Run) -> Option<Section> {
    if run.epochs.lines.is_empty() {
        return None;
    }
    let rows = run.epochs.lines.iter();
    let rows = rows.map(|line| line.iter().map(|cell| Cell::Number(short(cell))).collect());
    let table = Block::Table {
        head: run
            .epochs
            .columns
            .iter()
            .map(|column| column.replace('_', " "))
            .collect(),
        rows: rows.collect(),
    };
    Some(section("Epochs", vec![table]))
}

/// Numbers of many digits are rounded to six significant ones.
fn short(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if cell.contains('.') && cell.len() > 8 => {
            let digits = 5 - number.abs().max(1e-12).log10().floor() as i32;
            format!("{number:.*}", digits.clamp(0, 12) as usize)
        }
        _ => cell.to_owned(),
    }
}

fn environment(run: &Run) -> Option<Section> {
    let facts = run.report.as_ref()?["environment"].as_object()?.iter();
    let facts = facts.map(|(name, value)| {
        (
            name.clone(),
            value
                .as_str()
                .map_or_else(|| Value::to_string(value), str::to_owned),
        )
    });
    Some(section("Environment", vec![Block::Facts(facts.collect())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(update: f64, outcome: &str) -> Update {
        Update {
            update,
            loss: 2.0 / update,
            norm: 1.0,
            loss_scale: 65536.0,
            outcome: outcome.into(),
            items: 64.0,
            seconds: 0.5,
            in_use_bytes: Some(100 << 20),
            peak_bytes: None,
        }
    }

    #[test]
    fn a_run_without_an_end_has_a_page_too() {
        let run = Run {
            recipe: "[model]\nname = \"<b>\"".into(),
            updates: vec![update(1.0, "applied"), update(2.0, "overflow")],
            epochs: Default::default(),
            report: None,
            damaged: vec!["report.json is damaged".into()],
        };
        let html = page("runs/<last>", &run).html();
        for part in [
            "runs/&lt;last&gt;",
            "&lt;b&gt;",
            "report.json is damaged",
            "1 of them skipped",
            "Loss scale",
        ] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("<last>") && !html.contains("<b>"));
    }

    #[test]
    fn long_numbers_are_rounded_and_short_ones_are_not() {
        assert_eq!(short("0.12345678901"), "0.123457");
        assert_eq!(short("1234.5678901"), "1234.57");
        assert_eq!(short("421334016"), "421334016");
        assert_eq!(short("0.98"), "0.98");
        assert_eq!(short(""), "");
    }
}
