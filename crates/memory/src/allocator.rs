//! A global allocator that counts, so that the CPU has an exact, resettable peak.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;

use crate::heap::{give, take};

/// The system allocator, counting live bytes for [`heap`](crate::heap). For programs, not libraries:
///
/// ```
/// #[global_allocator]
/// static ALLOC: leanburn_memory::CountingAllocator = leanburn_memory::CountingAllocator::system();
/// ```
///
/// It costs two relaxed atomic operations per allocation. A `realloc` counts the difference; that
/// both copies exist for a moment, where the system has to move one, is not seen.
pub struct CountingAllocator(());

impl CountingAllocator {
    /// Counts what goes through [`System`].
    pub const fn system() -> Self {
        CountingAllocator(())
    }
}

// SAFETY: every call goes to `System` with the layout it came with; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        counted(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        counted(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) };
        give(layout.size());
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let resize = || unsafe { System.realloc(at, layout, size) };
        if size >= layout.size() {
            return counted(size - layout.size(), resize);
        }
        let moved = resize();
        if !moved.is_null() {
            give(layout.size() - size);
        }
        moved
    }
}

/// Runs `allocate` with `bytes` counted, unless they pass the cap; a failure counts nothing.
fn counted(bytes: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    if !take(bytes) {
        return null_mut();
    }
    let at = allocate();
    if at.is_null() {
        give(bytes);
    }
    at
}
