//! From a recipe to a trained model and its memory table.
//!
//! [`Recipe`] says what to do, [`Job`] opens its device and data, [`Trainer`] makes the steps, [`fit()`]
//! walks the data, [`saved`] resumes, [`Report`] says what came of it.

pub mod args;
mod classify;
pub mod device;
mod error;
mod fit;
pub mod interrupt;
mod job;
pub mod learner;
mod optimizer;
mod progress;
pub mod recipe;
mod report;
pub mod saved;
mod schedule;
mod trainer;

pub use args::RunArgs;
pub use classify::{Score, Trainable};
pub use device::{Backend, Chosen, choose};
pub use error::{TrainError, exit_code};
pub use fit::{Loaders, Outcome, Start, fit};
pub use job::Job;
pub use optimizer::{DecayGroups, OptimizerKind};
pub use progress::Progress;
pub use recipe::Recipe;
pub use report::Report;
pub use schedule::Schedule;
pub use trainer::{Settings, Trainer, Update};
