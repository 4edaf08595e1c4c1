//! Models whose memory leanburn accounts for, with the names of the libraries that people come from.

pub mod resnet;
pub mod transformer;
pub mod weights;

pub use resnet::{Depth, ResNet, ResNetConfig, Stem};
pub use transformer::{Encoder, EncoderConfig, Gpt, GptConfig};
pub use weights::{LoadReport, WeightsError};
