//! Trained networks in a quarter of the memory: INT8 post-training quantization.
//!
//! | step | where | what it does |
//! |---|---|---|
//! | fold | [`fold()`] | a BatchNorm into the convolution in front of it |
//! | smooth | [`smooth()`] | large activations into the weights behind a norm |
//! | watch | [`Calibration`] | the inputs of every layer, on real batches |
//! | choose | [`Method`] | a range for each of them |
//! | quantize | [`quantize()`] | int8 weights with a scale per output channel, uint8 inputs |
//! | judge | [`LayerReport`], [`Outputs`] | what that did to each layer |
//! | keep | [`file`] | the network in a burnpack file, or as safetensors |
//!
//! The layers that result are [`leanburn_levers::int8`].

mod calibrate;
mod error;
pub mod file;
mod fold;
mod layers;
mod method;
mod observer;
mod outputs;
mod quantize;
mod range;
mod scheme;
mod smooth;
mod tensors;
mod weights;

pub use calibrate::Calibration;
pub use error::QuantizeError;
pub use file::FileError;
pub use fold::{FoldError, fold};
pub use layers::{Kind, Layer, layers};
pub use method::{AVERAGING, Method, MethodError, PERCENTILE};
pub use observer::{ObserveError, Observer};
pub use outputs::Outputs;
pub use quantize::{InputReport, LayerReport, Quantized, Settings, quantize};
pub use range::Range;
pub use scheme::{LayerScheme, Scheme};
pub use smooth::{SmoothError, smooth};
pub use tensors::Noise;
pub use weights::Granularity;
