//! The work: calibrate, quantize, judge, layer by layer.

use anyhow::Result;
use leanburn_compress::{Method, Outputs, PERCENTILE, Quantized, Settings, layers};
use leanburn_levers::int8::Arithmetic;
use leanburn_train::quantize::{Judgement, Kept, Quantizes, Side, worst_first};
use leanburn_train::{Job, TrainError};

use super::Args;

/// All that is told.
pub struct Outcome {
    /// What was asked for, with the layers that were left in float.
    pub settings: Settings,
    /// Samples that calibration saw.
    pub calibrated: usize,
    pub smooth: Option<f32>,
    pub arithmetic: Arithmetic,
    pub float: Side,
    pub int8: Side,
    pub layers: Vec<LayerOutcome>,
    /// Layers that were not quantized.
    pub in_float: Vec<String>,
    /// Layers that were left in float one by one, and what that came to.
    pub kept: Vec<Kept>,
    /// The worst layers, and the network with each of them in float.
    pub worst: Vec<(String, Judgement)>,
}

/// A layer's report with what its outputs came to.
pub struct LayerOutcome {
    pub report: leanburn_compress::LayerReport,
    /// Its own SQNR, dB.
    pub output: Option<f64>,
}

/// Does it.
pub fn measure<T: Quantizes>(args: &Args, job: &Job<T>) -> Result<Outcome> {
    let usual = (T::MEASURE.key == "accuracy").then_some(Method::Percentile(PERCENTILE));
    let mut settings = args.settings(usual);
    let folder = tempfile::tempdir()?;
    let (network, resident) = job.resident(|| job.trained())?;
    settings
        .check(&layers(&network))
        .map_err(TrainError::from)?;
    eprintln!("judging the network in f32");
    let mut float = job.float_side(&network, resident, &folder.path().join("float.safetensors"))?;
    eprintln!("calibrating");
    let session = job.calibrate(network, args.calibrate, args.smooth)?;
    let (mut quantized, mut resident) = job.resident(|| session.quantize(&settings))?;
    eprintln!("comparing layer by layer");
    let outputs = session.outputs(&quantized, &settings, args.calibrate.min(64))?;
    let order = worst_first(&quantized, &outputs);

    let mut kept = Vec::new();
    if args.keep_float > 0 {
        let now = job.judge(&quantized.model)?;
        let limits = (args.keep_float, args.max_drop);
        kept = session.keep_float(&mut settings, &order, limits, &float.judgement, &now)?;
        drop(quantized);
        (quantized, resident) = job.resident(|| session.quantize(&settings))?;
    }
    eprintln!("judging the network in integers");
    let path = match &args.output {
        Some(path) => path.clone(),
        None => folder.path().join("int8.bpk"),
    };
    let mut int8 = job.int8_side(&quantized, resident, &path)?;
    let seconds = job.time([&session.float, &quantized.model])?;
    [float.seconds, int8.seconds] = seconds.map(Some);
    if let Some(path) = &args.safetensors {
        job.export(&quantized, path)?;
    }
    for path in args.output.iter().chain(&args.safetensors) {
        eprintln!("wrote {}", path.display());
    }

    let quantized_now = |layer: &&(String, f64)| quantized.scheme.contains_key(&layer.0);
    let mut worst = Vec::new();
    for (layer, _) in order.iter().filter(quantized_now).take(args.worst) {
        eprintln!("judging it with {layer} in float");
        worst.push((layer.clone(), session.without(&settings, layer)?));
    }
    Ok(Outcome {
        calibrated: session.calibrated,
        smooth: args.smooth,
        arithmetic: Arithmetic::of(&job.inference()),
        float,
        int8,
        in_float: quantized
            .float
            .iter()
            .map(|layer| layer.path.clone())
            .collect(),
        layers: told(quantized, &outputs),
        kept,
        worst,
        settings,
    })
}

fn told<M>(quantized: Quantized<M>, outputs: &Outputs) -> Vec<LayerOutcome> {
    let reports = quantized.layers.into_iter().map(|report| LayerOutcome {
        output: outputs.noise(&report.layer.path).map(|noise| noise.sqnr()),
        report,
    });
    reports.collect()
}
