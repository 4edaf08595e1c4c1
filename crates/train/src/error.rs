//! What can go wrong in a run, and the exit code that it means.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use leanburn_compress::{FileError, FoldError, QuantizeError, SmoothError};
use leanburn_data::DataError;
use leanburn_levers::scaling::MAX_CONSECUTIVE_SKIPS;
use leanburn_levers::{LossScaleError, PolicyError};
use leanburn_models::WeightsError;
use leanburn_models::transformer::SizeError;

/// One line that says what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A flag or a key of the recipe is out of range.
    #[error("{0}")]
    Recipe(String),
    /// The recipe file does not parse.
    #[error("{}: {cause}", path.display())]
    RecipeFile {
        /// The file.
        path: PathBuf,
        /// Where and why, in one line.
        cause: String,
    },
    /// The backend is not there.
    #[error("{0}")]
    Device(String),
    /// A step that the device has no room for.
    #[error("{0}")]
    Room(String),
    /// An operation of the step mixes dtypes.
    #[error("{0}")]
    Dtypes(String),
    /// A step that cannot be predicted.
    #[error("no prediction: {0}")]
    Prediction(String),
    /// A precision that is unknown, or that the device lacks.
    #[error(transparent)]
    Precision(#[from] PolicyError),
    /// A loss scale out of range.
    #[error(transparent)]
    LossScale(#[from] LossScaleError),
    /// The data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Sizes of a Transformer.
    #[error(transparent)]
    Sizes(#[from] SizeError),
    /// The weights file.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// A saved run that cannot be resumed.
    #[error("{}: {cause}", path.display())]
    Saved {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// A network that cannot be stored in integers.
    #[error("{0}")]
    Quantize(String),
    /// The same, layer by layer.
    #[error(transparent)]
    Layers(#[from] QuantizeError),
    /// A norm that cannot be folded.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// A norm that cannot be smoothed.
    #[error(transparent)]
    Smooth(#[from] SmoothError),
    /// A file of a network in integers.
    #[error(transparent)]
    Int8File(#[from] FileError),
    /// A file that cannot be read or written.
    #[error("{}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// Gradients overflowed too often in a row.
    #[error(
        "update {update}: {MAX_CONSECUTIVE_SKIPS} updates in a row skipped because the scaled gradient is not finite, \
         first in '{parameter}' (loss {loss}, loss scale {scale}): lower the learning rate, or use bf16 or fp32"
    )]
    Overflow {
        /// Number of the last update tried.
        update: u64,
        /// First parameter, in module order, whose gradient is not finite.
        parameter: String,
        /// Its finite loss.
        loss: f64,
        /// The scale at the end.
        scale: f32,
    },
    /// The loss was no number too often in a row.
    #[error(
        "update {update}: {MAX_CONSECUTIVE_SKIPS} updates in a row skipped because the loss itself is {loss}, so no loss \
         scale can help (first gradient not finite: '{parameter}'): check the data and lower the learning rate"
    )]
    Loss {
        /// Number of the last update tried.
        update: u64,
        /// The loss.
        loss: f64,
        /// First parameter whose gradient is not finite.
        parameter: String,
    },
}

impl TrainError {
    /// For `map_err` on file operations.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Io { path, cause }
    }

    /// Whether the user asked for something that cannot be (exit code 2), rather than the run failing (1).
    pub fn is_wrong_use(&self) -> bool {
        matches!(
            self,
            Self::Recipe(_)
                | Self::Sizes(_)
                | Self::RecipeFile { .. }
                | Self::Device(_)
                | Self::Precision(_)
                | Self::LossScale(_)
                | Self::Smooth(_)
                | Self::Layers(QuantizeError::Unknown { .. } | QuantizeError::Nothing)
        )
    }
}

/// Ends a program: the error on stderr in one line, and 0, 1 (failure) or 2 (wrong use).
pub fn exit_code(result: Result<(), TrainError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.is_wrong_use() { 2 } else { 1 })
        }
    }
}
