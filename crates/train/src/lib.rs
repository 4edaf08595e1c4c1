//! From a recipe to a trained model and its memory table.
//!
//! [`Recipe`] says what to do, [`Job`] opens its device and data, [`Trainer`] makes the steps, [`fit()`]
//! walks the data, [`saved`] resumes, [`Report`] says what came of it. All of these are the same for
//! every [`Task`]: [`images`] and [`text`].

pub mod args;
pub mod backend;
pub mod device;
mod environment;
mod error;
mod fit;
pub mod images;
pub mod interrupt;
mod job;
pub mod levers;
mod metrics;
mod names;
mod optimizer;
pub mod plan;
mod predict;
mod probe;
mod progress;
pub mod quantize;
pub mod recipe;
mod report;
mod room;
pub mod saved;
mod schedule;
pub mod task;
pub mod text;
mod trainable;
mod trainer;
mod updates;

pub use args::RunArgs;
pub use backend::{Backend, BackendKind, Index};
pub use device::{Chosen, Found, available, choose, devices, not_compiled_in};
pub use environment::environment;
pub use error::{TrainError, exit_code};
pub use fit::{Outcome, Start, fit};
pub use images::{ImageArgs, Images};
pub use job::Job;
pub use optimizer::{Adam, DecayGroups, OptimizerKind};
pub use plan::{Keep, Plan, Planner};
pub use predict::{predict, runtime};
pub use probe::Probe;
pub use progress::Progress;
pub use recipe::Recipe;
pub use report::Report;
pub use schedule::Schedule;
pub use task::Task;
pub use text::{Text, TextArgs};
pub use trainable::{Score, Trainable};
pub use trainer::{Settings, Trainer, Update};
