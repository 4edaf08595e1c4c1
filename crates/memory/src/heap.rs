//! The live bytes of the Rust heap, as the [`CountingAllocator`](crate::CountingAllocator) counts.
//!
//! The numbers are those of the whole process and all of its threads, in requested bytes: what the
//! system allocator adds (headers, size classes) is not in them. Without the counting allocator
//! everything reads 0 and [`installed`] says `false`.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Bytes;

static CURRENT: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Whether the counting allocator is this program's global allocator.
pub fn installed() -> bool {
    // While this box lives, an allocator that counts can't be at 0.
    let probe = black_box(Box::new(1u8));
    let counted = current() > 0;
    drop(probe);
    counted
}

/// Bytes alive now.
pub fn current() -> u64 {
    CURRENT.load(Relaxed)
}

/// The most bytes alive at once since the start, or since the last [`reset_peak`].
pub fn peak() -> u64 {
    PEAK.load(Relaxed)
}

/// Starts a new peak at the bytes alive now; returns the old one.
pub fn reset_peak() -> u64 {
    PEAK.swap(current(), Relaxed)
}

/// Caps the heap, to play a machine with less memory; `None` lifts the cap.
///
/// An allocation that would pass the cap fails as out of memory. Rust then **aborts the process**
/// (`memory allocation of N bytes failed`), except in code that asks first, as
/// [`Vec::try_reserve`] does. Nothing that is alive already is touched.
pub fn set_limit(limit: Option<Bytes>) {
    LIMIT.store(limit.map_or(u64::MAX, |bytes| bytes.0), Relaxed);
}

/// Counts `bytes` as alive, or says `false` where that would pass the cap.
pub(crate) fn take(bytes: usize) -> bool {
    let now = CURRENT.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    if now > LIMIT.load(Relaxed) {
        give(bytes);
        return false;
    }
    // Most allocations raise no peak, and a load is cheaper than a contended write.
    if now > PEAK.load(Relaxed) {
        PEAK.fetch_max(now, Relaxed);
    }
    true
}

/// Counts `bytes` as freed.
pub(crate) fn give(bytes: usize) {
    CURRENT.fetch_sub(bytes as u64, Relaxed);
}

/// Tests that watch the heap take turns, and use sizes far above what other tests allocate.
#[cfg(test)]
pub(crate) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const SLACK: u64 = 16 * MIB;

    #[track_caller]
    fn about(actual: u64, expected: u64) {
        assert!(
            actual.abs_diff(expected) <= SLACK,
            "{} is not about {}",
            Bytes(actual),
            Bytes(expected)
        );
    }

    #[test]
    fn counts_current_and_peak_and_starts_over() {
        let _turn = alone();
        assert!(installed());
        reset_peak();
        let before = current();

        let mut bytes = vec![1u8; 128 << 20];
        about(current(), before + 128 * MIB);
        bytes.resize(192 << 20, 2);
        bytes.shrink_to_fit();
        about(current(), before + 192 * MIB);
        bytes.truncate(64 << 20);
        bytes.shrink_to_fit();
        about(current(), before + 64 * MIB);
        drop(black_box(bytes));
        about(current(), before);

        // Growing may ask for more than is needed: at most twice the 128 MiB.
        assert!((before + 192 * MIB - SLACK..=before + 256 * MIB + SLACK).contains(&peak()));
        let old = reset_peak();
        assert!(old >= before + 192 * MIB - SLACK);
        about(peak(), before);
    }

    #[test]
    fn zeroed_memory_counts() {
        let _turn = alone();
        let before = current();
        let zeros = black_box(vec![0u64; 8 << 20]);
        about(current(), before + 64 * MIB);
        drop(zeros);
    }

    #[test]
    fn an_allocation_over_the_cap_fails_and_leaves_the_count() {
        let _turn = alone();
        // Far above what the other tests hold, or they would abort.
        set_limit(Some(Bytes(current() + 1024 * MIB)));
        let before = current();
        let mut bytes: Vec<u8> = Vec::new();
        let refused = bytes.try_reserve_exact(2048 << 20);
        set_limit(None);
        assert!(refused.is_err());
        about(current(), before);
    }
}
