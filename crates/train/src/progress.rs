//! A bar on a terminal, plain lines elsewhere; always on stderr.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use leanburn_memory::Bytes;

use crate::{Trainable, Trainer, Update};

const LINE_EVERY: Duration = Duration::from_secs(5);

/// How far a run is.
pub struct Progress {
    bar: Option<ProgressBar>,
    noun: &'static str,
    total: u64,
    start: Instant,
    items: u64,
    last_line: Option<Instant>,
    peak: Option<Bytes>,
}

impl Progress {
    /// For a run of `total` updates of which `done` are behind it; `noun` is what its speed counts.
    pub fn new(noun: &'static str, total: u64, done: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total).with_position(done);
            let template = "{bar:24} {pos}/{len} [{elapsed} < {eta}] {msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            noun,
            total,
            start: Instant::now(),
            items: 0,
            last_line: None,
            peak: None,
        }
    }

    /// After each update of a trainer, with the items that went into it and its loss in words.
    pub fn update<M: Trainable>(
        &mut self,
        trainer: &Trainer<M>,
        items: usize,
        update: &Update,
        loss: &str,
    ) {
        self.items += items as u64;
        let peak = trainer.measurement().map(|measured| measured.peak);
        self.peak = peak.max(self.peak);
        let bytes =
            |bytes: Option<Bytes>| bytes.map_or("not reported".into(), |bytes| bytes.to_string());
        let tried = trainer.tried();
        let text = format!(
            "{loss} | {:.1} {}/s | lr {:.2e} | skipped {} | memory {} now, {} peak",
            self.items_per_second(),
            self.noun,
            update.lr,
            trainer.skipped(),
            bytes(trainer.meter().current()),
            bytes(self.peak),
        );
        match &self.bar {
            Some(bar) => {
                bar.set_position(tried);
                bar.set_message(text);
            }
            None => {
                let due = self
                    .last_line
                    .is_none_or(|last| last.elapsed() >= LINE_EVERY);
                if due || tried == self.total {
                    eprintln!("update {tried}/{} | {text}", self.total);
                    self.last_line = Some(Instant::now());
                }
            }
        }
    }

    /// A line of its own, above the bar.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    /// Ends the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish();
        }
    }

    /// Seconds since the start.
    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Mean speed since the start.
    pub fn items_per_second(&self) -> f64 {
        self.items as f64 / self.seconds().max(1e-9)
    }
}
