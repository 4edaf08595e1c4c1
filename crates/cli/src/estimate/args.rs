//! Flags of `leanburn estimate`.

use std::path::PathBuf;

use leanburn_memory::Bytes;
use leanburn_memory::formulas::{Convention, Parallel, Recompute, Transformer, Zero};
use leanburn_train::Backend;

use crate::step::StepArgs;

/// Where to look.
#[derive(clap::Args, Debug, Default)]
#[command(
    after_help = "A recipe is traced: the trainer's own step runs on a device that records every operation and \
                  computes nothing, so neither data nor GPU are needed. docs/prediction.md says how, \
                  docs/accuracy.md how far off it was."
)]
pub struct Args {
    #[command(flatten)]
    pub step: StepArgs,
    /// Backend to predict for: flex (CPU), wgpu, vulkan, metal, cuda or rocm; it need not be there. By default that of
    /// the recipe, and cuda where --device names a GPU.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
    /// Classes of the images, where their folder is not here.
    #[arg(long, value_name = "N", value_parser = count)]
    pub classes: Option<usize>,
    /// Distinct tokens of the text, where the token file is not here.
    #[arg(long, value_name = "N", value_parser = count)]
    pub tokens: Option<usize>,

    /// The memory there is, as a GPU's name ("RTX 3090"), with what its driver reports.
    #[arg(long, value_name = "GPU", conflicts_with = "memory")]
    pub device: Option<String>,
    /// The memory there is, in bytes: 24GiB, 24GB, 512M.
    #[arg(long, value_name = "BYTES")]
    pub memory: Option<Bytes>,

    /// Predict a range of batches, doubling, and find the largest that fits: batch=8..256.
    #[arg(long, value_name = "batch=FROM..TO", value_parser = sweep, conflicts_with_all = ["levers", "timeline"])]
    pub sweep: Option<[usize; 2]>,
    /// Predict the step again with each lever pulled: what it saves, and how much more it computes.
    #[arg(long, conflicts_with = "timeline")]
    pub levers: bool,
    /// Draw the live bytes over the operations of the step as an SVG file.
    #[arg(long, value_name = "FILE")]
    pub timeline: Option<PathBuf>,

    /// Closed formulas instead of a recipe, for a Transformer that is too large to build here:
    /// layers=96,hidden=12288,heads=96,seq=2048,vocab=51200. --optimizer may be adam, adam8bit, lion, sgd-momentum
    /// or sgd there.
    #[arg(long, value_name = "SIZES", conflicts_with_all = [
        "config", "accumulate", "precision", "checkpoint", "offload", "image_size", "context", "backend", "classes", "tokens",
        "sweep", "levers", "timeline",
    ])]
    pub transformer: Option<Transformer>,
    /// How the Transformer is spread over devices: tp=8,pp=4,dp=16 and sp (sequence parallel).
    #[arg(long, value_name = "DEGREES", requires = "transformer")]
    pub parallel: Option<Parallel>,
    /// What the Transformer's backward computes again: none, selective (attention) or full.
    #[arg(long, value_name = "WHAT", requires = "transformer")]
    pub recompute: Option<Recompute>,
    /// ZeRO stage, 0 to 3: what the data-parallel devices divide.
    #[arg(long, value_name = "STAGE", requires = "transformer")]
    pub zero: Option<Zero>,
    /// Bytes per parameter: zero (16), megatron (18, gradients in f32 too), hugging-face (18), fp32 (16).
    #[arg(long, value_name = "CONVENTION", requires = "transformer")]
    pub states: Option<Convention>,
    /// Print every formula with its source and its value.
    #[arg(long, requires = "transformer")]
    pub explain: bool,

    /// Print one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

/// A number of classes or tokens.
pub fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=1 << 32).contains(&count) => Ok(count),
        _ => Err("want a number from 1 to 2^32".into()),
    }
}

fn sweep(text: &str) -> Result<[usize; 2], String> {
    let range = text.strip_prefix("batch=").unwrap_or(text);
    let ends = range
        .split_once("..")
        .map(|(from, to)| [from, to].map(|end| end.trim().parse()));
    match ends {
        Some([Ok(from), Ok(to)]) if 0 < from && from <= to => Ok([from, to]),
        _ => Err("want batch=FROM..TO, such as batch=8..256".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_empty_ones_refused() {
        assert_eq!(sweep("batch=8..256"), Ok([8, 256]));
        assert_eq!(sweep("4..4"), Ok([4, 4]));
        for wrong in ["batch=0..4", "batch=9..8", "batch=8", "width=1..2", ""] {
            assert!(sweep(wrong).is_err(), "{wrong}");
        }
    }
}
