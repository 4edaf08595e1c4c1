//! The flags.

use std::path::PathBuf;

use leanburn_compress::{Granularity, Method, Settings};
use leanburn_train::Backend;

/// Flags of `leanburn quantize`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Ranges of inputs are chosen on the training data, and networks judged on the validation data. Images \
                  are quantized with their inputs, by percentile; text in its weights only, unless --method says \
                  otherwise. docs/quantization.md has more."
)]
pub struct Args {
    /// resnet18 to resnet152, or tiny, small, medium, large, xl, llama-7b, bert-base.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["run", "from"])]
    pub model: Option<String>,
    /// Recipe (TOML) that says the same and more; the flags override its keys.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "from"])]
    pub config: Option<PathBuf>,
    /// Trained weights: .safetensors or .pth under torchvision's or Hugging Face's names.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "from"])]
    pub weights: Option<PathBuf>,
    /// Folder of a training run, instead of the three above: its recipe.toml and model.safetensors.
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    pub run: Option<PathBuf>,
    /// Judge a network that is quantized already, instead of all this.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "safetensors", "method", "keep_float"])]
    pub from: Option<PathBuf>,
    /// digits, synthetic, a folder with train/CLASS/* and val/CLASS/*, jargon, or a token file.
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// Height and width of the images, in pixels.
    #[arg(long, value_name = "PIXELS")]
    pub image_size: Option<usize>,
    /// Tokens of a sequence.
    #[arg(long, value_name = "N")]
    pub context: Option<usize>,
    /// Samples of a batch.
    #[arg(long, value_name = "N")]
    pub batch: Option<usize>,
    /// auto, flex (CPU), wgpu, vulkan, metal, cuda or rocm, with a device's number: cuda:1, wgpu:cpu.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<Backend>,
    /// Training samples that the ranges of inputs are chosen from.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = at_least_one)]
    pub calibrate: usize,
    /// How: minmax, average, percentile (99.99), percentile:99.9, entropy, mse, or none for weights only.
    #[arg(long, value_name = "NAME", value_parser = parse_method)]
    pub method: Option<MethodFlag>,
    /// What of a weight has a scale of its own: channel or tensor.
    #[arg(long, value_name = "WHAT", default_value = "channel", value_parser = parse_granularity)]
    pub scales: Granularity,
    /// Move large activations into weights first (SmoothQuant): 0 leaves them, 1 moves all, 0.5 is usual.
    #[arg(long, value_name = "ALPHA", allow_negative_numbers = true, value_parser = parse_alpha)]
    pub smooth: Option<f32>,
    /// Leave at most N layers in float, those that suffer most first, until --max-drop is met.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub keep_float: usize,
    /// How much worse the network may be before --keep-float leaves another layer: in points of accuracy, or in
    /// bits per byte.
    #[arg(long, value_name = "X", default_value_t = 0.1, allow_negative_numbers = true, value_parser = finite)]
    pub max_drop: f64,
    /// A layer to leave in float, or the beginning of its name, such as layer4; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Layers to print, worst first, each judged once more with that layer in float.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub worst: usize,
    /// Write the quantized network (burnpack), for --from and leanburn::compress::file::load.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write its integers and scales for other programs.
    #[arg(long, value_name = "FILE")]
    pub safetensors: Option<PathBuf>,
    /// Print one JSON object on stdout.
    #[arg(long)]
    pub json: bool,
}

/// A method, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodFlag(pub Option<Method>);

fn parse_method(text: &str) -> Result<MethodFlag, String> {
    match text {
        "none" => Ok(MethodFlag(None)),
        text => match text.parse() {
            Ok(method) => Ok(MethodFlag(Some(method))),
            Err(error) => Err(format!("{error}, or none")),
        },
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("want a number of samples, at least 1".into()),
        Ok(samples) => Ok(samples),
    }
}

fn parse_alpha(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(alpha) if (0.0..=1.0).contains(&alpha) => Ok(alpha),
        _ => Err("want a number from 0 to 1".into()),
    }
}

fn finite(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err("want a number".into()),
    }
}

fn parse_granularity(text: &str) -> Result<Granularity, String> {
    match text {
        "channel" => Ok(Granularity::Channel),
        "tensor" => Ok(Granularity::Tensor),
        _ => Err(format!("unknown scales '{text}': use channel or tensor")),
    }
}

impl Args {
    /// What they ask for, with this method where they name none.
    pub fn settings(&self, usual: Option<Method>) -> Settings {
        Settings {
            granularity: self.scales,
            method: self.method.map_or(usual, |flag| flag.0),
            keep_float: self.skip.clone(),
            weight_only: Vec::new(),
        }
    }
}
