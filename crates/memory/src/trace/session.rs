//! Recording: the capture device, and notes among its operations.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Capture, DeviceOps, set_default_dtypes};
use burn::tensor::{Device, IntDType, Tensor};
use burn_ir::{CustomOpIr, OperationIr, ScalarIr};
use burn_router::RouterClient;

use super::{Operation, dtypes};
use crate::{Bytes, Mark, Row};

const NOTE: &str = "leanburn.note";

/// Why a step could not be traced.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Another trace runs on this thread.
    #[error("a trace runs inside another one; end that first")]
    Nested,
    /// Burn refused to record.
    #[error("the step cannot be recorded: {0}")]
    Capture(String),
    /// An operation got tensors of different dtypes, which Burn does not promote: some backends panic at it, and a
    /// matrix product on the GPU backends is silently wrong.
    #[error(
        "after the mark '{reached}': {operation}, which some backends compute wrong without a word; cast the inputs \
         to one dtype"
    )]
    MixedDtypes {
        /// What, and of which.
        operation: String,
        /// The last mark of the step before it.
        reached: String,
    },
    /// It reads values back, seeds, moves tensors, or uses what the capture device does not record.
    #[error("the step cannot be traced: {0}")]
    Panicked(String),
}

/// What a trace shall know and the capture device does not record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// A point of the step, and the size of the gradient that passes there.
    Mark(Mark, Bytes),
    /// The model stores this tensor under this path.
    Stored {
        /// The tensor.
        id: u64,
        /// Its path in the module.
        path: String,
        /// [`Row::Parameters`] or [`Row::Buffers`].
        row: Row,
    },
    /// From here to [`Note::KernelEnd`] it is one operation on backends with this kernel.
    KernelBegin(Kernel),
    /// See there.
    KernelEnd,
}

/// What a kernel that stands for several operations does with memory, beyond inputs and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kernel {
    /// In tables.
    pub name: &'static str,
    /// Bytes that it needs while it runs.
    pub workspace: u64,
    /// Whether an output takes over the memory of an input that ends here.
    pub in_place: bool,
    /// Whether inputs that end here are let go before the outputs are made.
    pub consumes: bool,
}

impl Kernel {
    /// One that makes its outputs and needs nothing else.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

struct Session {
    /// Any tensor of the capture: the way to the device's queue.
    handle: FloatTensor<Capture>,
    notes: Vec<Note>,
}

thread_local! {
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
    /// How far the step came, for the error where it panics.
    static REACHED: Cell<Mark> = const { Cell::new(Mark::Start) };
}

/// What a step did.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// In order.
    pub operations: Vec<Operation>,
}

/// Runs `step` on a capture device with autodiff, and returns what it did there and what it returned.
///
/// The device computes nothing: `step` must not read values back, seed, or move tensors elsewhere, and
/// must take gradients by the means of `leanburn_levers::captured`.
///
/// ```
/// use burn::tensor::Tensor;
/// use leanburn_memory::trace::trace;
///
/// let (trace, shape) = trace(|device| {
///     let x = Tensor::<2>::ones([4, 8], device);
///     x.clone().matmul(x.transpose()).dims()
/// })?;
/// assert_eq!(shape, [4, 4]);
/// assert!(trace.operations.len() >= 3);
/// # Ok::<(), leanburn_memory::trace::TraceError>(())
/// ```
///
/// # Errors
///
/// Where `step` panics on that device, or runs inside another trace.
pub fn trace<R>(step: impl FnOnce(&Device) -> R) -> Result<(Trace, R), TraceError> {
    if is_tracing() {
        return Err(TraceError::Nested);
    }
    keep_panics_quiet();
    REACHED.set(Mark::Start);
    let device = Device::capture();
    let mut outcome = None;
    let run = AssertUnwindSafe(|| {
        device.capture_scope(|scope| {
            outcome = Some(within_session(&device, step));
            scope.complete([], [])
        })
    });
    let captured = catch_unwind(run)
        .map_err(|panic| refusal(message(panic.as_ref())))?
        .map_err(|error| TraceError::Capture(error.to_string()))?;
    let (result, notes) = outcome.expect("the scope has run");
    let operations = captured.graph.operations.into_iter();
    let operations = operations.map(|operation| match noted(&operation) {
        Some(index) => Operation::Note(notes[index].clone()),
        None => Operation::of(operation),
    });
    let trace = Trace {
        operations: operations.collect(),
    };
    dtypes::check(&trace)?;
    Ok((trace, result))
}

fn within_session<R>(device: &Device, step: impl FnOnce(&Device) -> R) -> (R, Vec<Note>) {
    /// Ends the session, also where the step panics.
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            SESSION.set(None);
        }
    }
    // As on every other backend; its own default is 64 bits. A device is configured once, and this one is new.
    let configured = device.clone().configure(IntDType::I32);
    configured.expect("a new device");
    let handle = Tensor::<1>::zeros([1], device).try_into_primitive::<Capture>();
    let handle = handle.expect("made on the capture device");
    // Autodiff asks below the dispatch.
    let below = handle.client.device();
    let usual = below.defaults();
    let configured =
        set_default_dtypes::<Capture>(&below, usual.float_dtype, IntDType::I32, usual.bool_dtype);
    configured.expect("a new device");
    SESSION.set(Some(Session {
        handle,
        notes: Vec::new(),
    }));
    let _end = End;
    let result = step(&device.clone().autodiff());
    let session = SESSION.take().expect("begun above");
    (result, session.notes)
}

/// A panic of a traced step is an error of the trace, and says so itself.
fn keep_panics_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let tracing = SESSION.try_with(|session| {
                let session = session.try_borrow();
                session.is_ok_and(|session| session.is_some())
            });
            let tracing = tracing.unwrap_or(false);
            if !tracing {
                usual(info);
            }
        }));
    });
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it panicked").replace('\n', " ")
}

/// The capture device itself refuses most operations of mixed dtypes, all but products.
fn refusal(message: String) -> TraceError {
    match message.contains("DTypeMismatch") {
        true => TraceError::MixedDtypes {
            operation: "an operation of mixed dtypes".into(),
            reached: REACHED.get().to_string(),
        },
        false => TraceError::Panicked(message),
    }
}

fn noted(operation: &OperationIr) -> Option<usize> {
    match operation {
        OperationIr::Custom(custom) if custom.id == NOTE => match custom.scalars.first() {
            Some(ScalarIr::UInt(index)) => usize::try_from(*index).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a trace runs on this thread.
pub fn is_tracing() -> bool {
    SESSION.with_borrow(Option::is_some)
}

/// Puts a note between the operations of the trace that runs on this thread, if there is one.
pub fn note(note: Note) {
    if let Note::Mark(mark, _) = note {
        REACHED.set(mark);
    }
    SESSION.with_borrow_mut(|session| {
        if let Some(session) = session {
            let index = ScalarIr::UInt(session.notes.len() as u64);
            session.notes.push(note);
            let operation = CustomOpIr::with_scalars(NOTE, &[], &[], vec![index]);
            let client = &session.handle.client;
            client.register_op(OperationIr::Custom(operation));
        }
    });
}

/// Says, where a step is traced, that a backend with this kernel runs all operations up to the end of the
/// returned guard as one.
#[must_use = "the kernel ends where this is dropped"]
pub fn as_one(kernel: impl FnOnce() -> Option<Kernel>) -> AsOne {
    let kernel = is_tracing().then(kernel).flatten();
    let noted = kernel.is_some();
    if let Some(kernel) = kernel {
        note(Note::KernelBegin(kernel));
    }
    AsOne { noted }
}

/// A kernel that has begun.
pub struct AsOne {
    noted: bool,
}

impl Drop for AsOne {
    fn drop(&mut self) {
        if self.noted {
            note(Note::KernelEnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::FloatDType;

    use super::*;
    use crate::record;

    #[test]
    fn what_cannot_be_recorded_is_an_error_and_the_next_trace_works() {
        let error = trace(|device| Tensor::<1>::ones([2], device).into_data()).unwrap_err();
        assert!(matches!(error, TraceError::Panicked(_)), "{error}");
        assert!(!error.to_string().contains('\n'));
        let (_, nested) = trace(|_| trace(|_| ()).err()).unwrap();
        assert!(matches!(nested, Some(TraceError::Nested)));
        assert!(!is_tracing());
    }

    #[test]
    fn mixed_dtypes_are_refused_with_the_place() {
        for product in [true, false] {
            let traced = trace(|device| {
                let x = Tensor::<2>::ones([4, 4], device);
                record::mark(Mark::Forward(2), Bytes(0));
                let half = x.clone().cast(FloatDType::F16);
                match product {
                    true => x.matmul(half),
                    false => x + half,
                }
            });
            let error = traced.map(|_| ()).unwrap_err();
            assert!(matches!(error, TraceError::MixedDtypes { .. }), "{error}");
            assert!(error.to_string().contains("'forward 2'"), "{error}");
        }
    }

    #[test]
    fn notes_stand_between_the_operations() {
        let note_count = |trace: &Trace| {
            let notes = trace.operations.iter();
            notes.filter(|x| matches!(x, Operation::Note(_))).count()
        };
        let (with, ()) = trace(|device| {
            let _one = as_one(|| Some(Kernel::new("all")));
            let _ = Tensor::<1>::ones([2], device).exp();
        })
        .unwrap();
        assert_eq!(note_count(&with), 2);
        let (without, ()) = trace(|_| drop(as_one(|| None))).unwrap();
        assert_eq!(note_count(&without), 0);
        drop(as_one(|| unreachable!("nothing is traced")));
    }
}
