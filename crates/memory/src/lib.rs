//! Bytes, the ledger of memory rows, and the meters that fill it.
//!
//! Every row of the memory table has one definition, [`Row::meaning`], and predict, measure and
//! compare all use it. A [`Meter`] reads one device; a [`census()`] counts what a module stores;
//! a [`Measurement`] holds what one step took; [`Table`] prints it and [`to_json`] writes it. A
//! [`Prediction`] says the same of a step that was never run, from its [`trace`](trace::trace);
//! [`compare()`] sets both side by side.
//!
//! ```
//! use leanburn_memory::{Bytes, Ledger, Measurement, Phase, Row, render};
//!
//! let measured = Measurement {
//!     phase: Phase::Backward,
//!     peak: Bytes(3 << 20),
//!     kept_after_forward: Some(Bytes(2 << 20)),
//!     rows: Ledger::default().with(Row::Parameters, Bytes(1 << 20)),
//! };
//! print!("{}", render(&measured, None));
//! ```

pub mod allocator;
pub mod budget;
pub mod bytes;
pub mod catalogue;
pub mod census;
pub mod chain;
mod compare;
pub mod device;
pub mod extrapolate;
pub mod formulas;
pub mod growth;
pub mod heap;
pub mod json;
pub mod ledger;
pub mod meter;
mod nvidia;
#[cfg(feature = "pool")]
pub mod pool;
pub mod prediction;
pub mod record;
pub mod table;
pub mod trace;

pub use allocator::CountingAllocator;
pub use budget::{Budget, Fit};
pub use bytes::{Bytes, BytesError};
pub use catalogue::{Catalogue, CatalogueError, Gpu, Instance, Maker};
pub use census::{Census, Count, census};
pub use compare::{Comparison, Difference, compare};
pub use device::{Format, Properties, Space};
pub use growth::Growth;
pub use json::to_json;
pub use ledger::{Ledger, Measurement, Phase, Row};
pub use meter::Meter;
pub use prediction::{Confidence, Largest, Method, Prediction};
pub use record::{Known, Mark, Record};
pub use table::{Table, render};

/// Whether this build knows the allocators of GPU backends, and so predicts what they take beyond the bytes in use.
pub const KNOWS_POOLS: bool = cfg!(feature = "pool");

// The unit tests count their own heap.
#[cfg(test)]
#[global_allocator]
static ALLOC: CountingAllocator = CountingAllocator::system();
