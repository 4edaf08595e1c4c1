//! What ResNet steps take under several checkpoint policies: memory, and time in turn.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use burn::tensor::Device;
use leanburn::data::{Batch, HostBatch};
use leanburn::levers::{CheckpointPolicy, Offload, Policy};
use leanburn::memory::Bytes;
use leanburn::models::{Depth, ResNet, ResNetConfig};
use leanburn::train::{Settings, Trainable, Trainer};
use plotters::prelude::*;

/// Which steps.
pub struct Steps {
    pub depth: Depth,
    pub batch: usize,
    pub image_size: usize,
    pub policy: Policy,
    /// With autodiff.
    pub device: Device,
}

/// What the steps of one checkpoint policy took.
pub struct Point {
    pub policy: CheckpointPolicy,
    /// After the forward.
    pub kept: Bytes,
    /// The most that activations and temporaries take.
    pub step: Bytes,
    pub peak: Bytes,
    /// Of forward and backward, median.
    pub seconds: f64,
}

impl Steps {
    /// Every policy, for so many timed rounds.
    pub fn measure(&self, policies: &[CheckpointPolicy], rounds: usize) -> Result<Vec<Point>> {
        let batch = self.images();
        let mut points = Vec::new();
        for policy in policies {
            points.push(self.memory(policy, &batch)?);
        }
        // In turn, so that the machine's moods hit all policies alike; the first round warms up.
        let models: Vec<ResNet> = policies.iter().map(|policy| self.model(policy)).collect();
        let mut seconds = vec![Vec::new(); models.len()];
        for round in 0..=rounds {
            for (model, seconds) in models.iter().zip(&mut seconds) {
                let start = Instant::now();
                drop(model.loss(batch.clone()).backward());
                self.device.sync()?;
                if round > 0 {
                    seconds.push(start.elapsed().as_secs_f64());
                }
            }
            eprintln!("round {round} of {rounds}");
        }
        for (point, mut seconds) in points.iter_mut().zip(seconds) {
            seconds.sort_by(f64::total_cmp);
            point.seconds = seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN);
        }
        Ok(points)
    }

    fn model(&self, checkpoint: &CheckpointPolicy) -> ResNet {
        let config = ResNetConfig::new(self.depth, 1000);
        let model = config.init(&self.device).with_policy(self.policy);
        model.with_checkpoint(checkpoint.clone(), Offload::None)
    }

    /// The second of two whole training steps: the first allocates what the second keeps.
    fn memory(&self, policy: &CheckpointPolicy, batch: &Batch) -> Result<Point> {
        let settings = Settings::plain(batch.len());
        let mut trainer = Trainer::bare(settings, &self.device, || self.model(policy))?;
        for _ in 0..2 {
            trainer.micro_step(batch.clone());
            trainer.update()?;
        }
        let unknown = "this backend does not report its memory";
        let measured = trainer.measurement().context(unknown)?;
        let record = trainer.record().context(unknown)?;
        let step = record.step_peak(trainer.known(), trainer.origin());
        Ok(Point {
            policy: policy.clone(),
            kept: measured.kept_after_forward.unwrap_or_default(),
            step: step.context(unknown)?,
            peak: measured.peak,
            seconds: f64::NAN,
        })
    }

    fn images(&self) -> Batch {
        let pixels = self.batch * 3 * self.image_size.pow(2);
        HostBatch {
            pixels: (0..pixels).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect(),
            labels: (0..self.batch as i64).map(|i| i % 1000).collect(),
            image_size: self.image_size,
            visited: self.batch,
        }
        .into_device(&self.device)
    }
}

/// Memory to the right, time upwards, relative to `reference`; a point further down and left is better.
pub fn draw(
    points: &[(String, &Point)],
    reference: &Point,
    batch: usize,
    path: &Path,
) -> Result<()> {
    let at = |point: &Point| {
        let time = point.seconds / reference.seconds;
        (point.step.0 as f64 / batch as f64 / 1e6, time)
    };
    let largest = |of: fn((f64, f64)) -> f64| {
        let values = points.iter().map(|(_, point)| of(at(point)));
        values.fold(0.0, f64::max)
    };
    let (memory, time) = (largest(|p| p.0) * 1.2, largest(|p| p.1) * 1.05);
    let area = SVGBackend::new(path, (720, 440)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..memory, 0.95..time.max(1.1))?;
    chart
        .configure_mesh()
        .x_desc("activations and temporaries at the peak, MB per image")
        .y_desc("time per step, relative to keeping everything")
        .draw()?;
    chart.draw_series(points.iter().map(|(label, point)| {
        let label = Text::new(label.clone(), (8, -6), ("sans-serif", 13));
        EmptyElement::at(at(point)) + Circle::new((0, 0), 4, BLACK.filled()) + label
    }))?;
    Ok(area.present()?)
}
