//! Batch statistics that a recomputation finds instead of computing them again.
//!
//! While a block runs for the first time, its norms leave what they found in a record; when it runs
//! again they take it from there, in the same order. Mean and variance are a few bytes per channel,
//! and computing them takes half of a norm's time.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use burn::backend::DispatchTensor;

/// Mean and variance, without autodiff.
pub(super) type Statistics = [DispatchTensor; 2];

/// What the norms of a block found, in order.
#[derive(Clone, Default)]
pub(crate) struct Record(Arc<Mutex<Vec<Statistics>>>);

enum Frame {
    Recording(Record),
    Replaying(std::vec::IntoIter<Statistics>),
}

thread_local! {
    /// Blocks inside blocks: the innermost comes last.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

impl Record {
    /// Runs a block for the first time.
    pub fn first<R>(&self, f: impl FnOnce() -> R) -> R {
        within(Frame::Recording(self.clone()), f)
    }

    /// Runs it again.
    pub fn again<R>(&self, f: impl FnOnce() -> R) -> R {
        let kept = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        within(Frame::Replaying(kept.into_iter()), f)
    }
}

fn within<R>(frame: Frame, f: impl FnOnce() -> R) -> R {
    struct Pop;
    impl Drop for Pop {
        fn drop(&mut self) {
            FRAMES.with_borrow_mut(Vec::pop);
        }
    }
    FRAMES.with_borrow_mut(|frames| frames.push(frame));
    let _pop = Pop;
    f()
}

/// What a norm found the first time; `None` if this is the first time.
///
/// A block inside a recomputed block runs for the first time there, and still replays: it is the
/// outer block's second.
pub(super) fn next() -> Option<Statistics> {
    FRAMES.with_borrow_mut(|frames| {
        frames.iter_mut().rev().find_map(|frame| match frame {
            Frame::Replaying(kept) => Some(kept.next().expect("the block does the same again")),
            Frame::Recording(_) => None,
        })
    })
}

/// Whether a norm that runs now has run before, so that its running statistics have moved.
pub(super) fn is_replaying() -> bool {
    let replaying = |frame: &Frame| matches!(frame, Frame::Replaying(_));
    FRAMES.with_borrow(|frames| frames.iter().any(replaying))
}

/// Leaves what a norm found for the recomputation, if there will be one.
pub(super) fn keep(statistics: impl FnOnce() -> Statistics) {
    FRAMES.with_borrow(|frames| {
        if let Some(Frame::Recording(record)) = frames.last() {
            let mut kept = record.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(statistics());
        }
    });
}
