use crate::DataError;

/// Which part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Train,
    Val,
}

/// One image with its class.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// `[3, size, size]`, row-major, normalised.
    pub pixels: Vec<f32>,
    /// Index into [`Source::classes`].
    pub label: usize,
}

/// A set of labelled images, all of one square size.
pub trait Source: Send + Sync {
    /// For people: `digits (1437 images)`, `image folder PATH`.
    fn name(&self) -> String;

    /// Number of images.
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Class names; a label is an index into them.
    fn classes(&self) -> &[String];

    /// Height and width of every sample, in pixels.
    fn image_size(&self) -> usize;

    /// Reads image `index`, which is below [`len`](Self::len).
    ///
    /// `view` is the seed of the augmentation to draw for this visit; `None` gives the evaluation transform. The same
    /// index and view give the same sample, on any thread.
    ///
    /// # Errors
    ///
    /// [`DataError::Unreadable`] for a file that cannot be decoded (a [`Loader`](crate::Loader) goes on without it);
    /// [`DataError::Index`] for an index out of range. Any other error ends an epoch.
    fn sample(&self, index: usize, view: Option<u64>) -> Result<Sample, DataError>;
}
