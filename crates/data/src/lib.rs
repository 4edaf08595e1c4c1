//! Labelled images, texts, and the batches made of them.
//!
//! A [`Source`] knows how to read one image: [`Digits`] (ships with the crate), [`ImageFolder`] (`train/<class>/*`,
//! `val/<class>/*`) and [`Synthetic`]. A [`Loader`] turns a source into epochs of batches: same seed, same batches,
//! whatever the number of worker threads, and resumable in the middle of an epoch. Images are read batch by batch;
//! never more than `workers + 1` batches exist at once.
//!
//! ```
//! use leanburn_data::{Digits, Loader, LoaderConfig, Split};
//! use std::sync::Arc;
//!
//! let digits = Arc::new(Digits::load(Split::Train, 16)?);
//! let config = LoaderConfig { batch: 64, workers: 2, seed: 1, shuffle: true, augment: true, strict: false };
//! for batch in Loader::new(digits, config).epoch(0, 0) {
//!     assert!(batch?.len() <= 64);
//! }
//! # Ok::<(), leanburn_data::DataError>(())
//! ```
//!
//! Texts are in [`tokens`].
//!
//! [`BurnDataset`] and [`SampleBatcher`] plug a source into Burn's own dataloaders.

mod batch;
mod bridge;
mod decode;
mod digits;
mod error;
mod folder;
mod loader;
mod random;
mod source;
mod synthetic;
pub mod tokens;
mod transform;

pub use batch::{Batch, HostBatch};
pub use bridge::{BurnDataset, SampleBatcher};
pub use digits::Digits;
pub use error::DataError;
pub use folder::ImageFolder;
pub use loader::{Batches, Loader, LoaderConfig};
pub use source::{Sample, Source, Split};
pub use synthetic::Synthetic;
pub use tokens::TextError;
