use std::path::PathBuf;

/// What can go wrong between a file and a batch. Every message is one line: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    #[error("image size {size} is too small for {set}: use {least} or more")]
    ImageSize {
        set: &'static str,
        size: usize,
        least: usize,
    },

    #[error(
        "the digits that ship with leanburn are damaged ({cause}): build leanburn again from a clean checkout"
    )]
    DamagedDigits { cause: String },

    #[error(
        "cannot list {path} ({cause}): an image folder holds train/<class>/ and val/<class>/, readable by you"
    )]
    Listing {
        path: PathBuf,
        cause: std::io::Error,
    },

    #[error(
        "no class folders in {path}: put the images of each class into a folder of its own there"
    )]
    NoClasses { path: PathBuf },

    #[error(
        "no images in class folder {path}: add .jpg, .jpeg, .png, .bmp or .webp files, or remove the folder"
    )]
    EmptyClass { path: PathBuf },

    #[error(
        "class folder {path} is not among the classes of {train}: rename it, remove it or add it to both"
    )]
    UnknownClass { path: PathBuf, train: PathBuf },

    #[error("the name of class folder {path} is not UTF-8: rename it")]
    ClassName { path: PathBuf },

    #[error("cannot read image {path} ({cause}): repair, replace or remove the file")]
    Unreadable { path: PathBuf, cause: String },

    #[error("no image of {set} could be read: {cause}")]
    NothingReadable { set: String, cause: String },

    #[error("there is no image {index} in {set}: it has {len}")]
    Index {
        set: String,
        index: usize,
        len: usize,
    },

    #[error(
        "image {index} of {set} has {got} values instead of {expected}: its Source must return [3, size, size]"
    )]
    SampleShape {
        set: String,
        index: usize,
        got: usize,
        expected: usize,
    },

    #[error(
        "reading image {index} of {set} panicked ({cause}): remove that image, and please report it"
    )]
    Panicked {
        set: String,
        index: usize,
        cause: String,
    },

    #[error("a batch of 0 images cannot be made: set the batch size to 1 or more")]
    BatchSize,

    #[error("cannot start a loader thread ({cause}): use fewer workers")]
    WorkerStart { cause: std::io::Error },

    #[error("a loader thread ended without delivering its batch: run with 0 workers to see why")]
    WorkerLost,

    #[error(transparent)]
    Text(#[from] crate::TextError),
}
