use super::super::method::MethodError;

/// Why nothing could be observed, or no range be given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserveError {
    /// A batch holds values that no range can contain.
    #[error(
        "{nan} NaN and {infinite} infinite among {values} values: calibrate with inputs on which \
         the model is finite"
    )]
    NonFinite {
        /// How many are NaN.
        nan: usize,
        /// How many are infinite.
        infinite: usize,
        /// How many there are.
        values: usize,
    },
    /// There is nothing to choose a range from.
    #[error("no values were seen: run at least one batch through the model before")]
    Nothing,
    /// The method can't be used.
    #[error(transparent)]
    Method(#[from] MethodError),
}
