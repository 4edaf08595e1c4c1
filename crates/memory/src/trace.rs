//! The operations of a training step, recorded on Burn's capture device, which computes nothing.
//!
//! [`trace`] hands out that device and collects what is done there. What the device itself does not
//! record comes along as [`Note`]s in the stream of operations: the marks of the step, and which
//! operations are one [`Kernel`] on some backend. [`Replay`] follows the buffers.

mod dtypes;
mod flex;
pub mod gemm;
mod layout;
mod operation;
mod replay;
#[cfg(feature = "pool")]
pub(crate) mod reserved;
mod runtime;
mod session;
mod work;

pub use operation::{Operation, Use};
pub use replay::{Buffer, Moment, Replay};
pub use runtime::Runtime;
pub use session::{AsOne, Kernel, Note, Trace, TraceError, as_one, is_tracing, note, trace};
pub use work::{Counter, Rates, Work};
