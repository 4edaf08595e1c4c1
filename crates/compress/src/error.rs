//! Why a network is not quantized.

use crate::ObserveError;

/// Names in an error: not more than can be read.
fn some(names: &[String]) -> String {
    const MOST: usize = 12;
    match names.len().checked_sub(MOST) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} others", names[..MOST].join(", ")),
    }
}

/// Why a network is not quantized.
#[derive(Debug, thiserror::Error)]
pub enum QuantizeError {
    /// Layers whose inputs nobody saw.
    #[error(
        "no inputs seen of {}: run batches through the watched network before, or quantize only the weights of \
         these layers", some(.0)
    )]
    Uncalibrated(Vec<String>),
    /// Inputs that no range can contain.
    #[error("inputs of {layer}: {cause}")]
    Inputs {
        /// Path of the layer.
        layer: String,
        /// What is wrong with them.
        cause: ObserveError,
    },
    /// A weight that is no number.
    #[error("the weight of {0} has values that are no numbers: load sound weights")]
    Weight(String),
    /// A name that no layer has.
    #[error("no layer is called {name}; there are {}", some(.known))]
    Unknown {
        /// As asked.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Weights that are integers or cast already.
    #[error(
        "the weight of {0} is quantized, cast or watched already: start from the network in f32, without a \
         precision policy"
    )]
    Taken(String),
    /// No layer to quantize.
    #[error("no convolution, linear layer or embedding is left to quantize: leave fewer in float")]
    Nothing,
}
