//! Random numbers that a recomputation can draw again.
//!
//! Burn has one generator per kind of backend, which can be seeded but not saved. So every
//! checkpointed block draws from a generator of its own: seeded from the stream below before the
//! forward, with the same seed before the recomputation, and with a third one after it, so that
//! nothing that follows repeats the block's numbers.

use std::cell::Cell;

use burn::tensor::Device;

thread_local! {
    static STREAM: Cell<u64> = const { Cell::new(0) };
}

/// Seeds the device's generator and the stream that checkpointed blocks take their seeds from.
///
/// Call it where you would call [`Device::seed`], on the thread that trains: from then on a run
/// repeats itself, dropout masks included. The device's generator is one for all threads, so two
/// runs that train at once in one process share it, with or without checkpointing.
pub fn seed(device: &Device, seed: u64) {
    // The capture device draws nothing.
    if !leanburn_memory::trace::is_tracing() {
        device.seed(seed);
    }
    STREAM.set(seed);
}

/// The next seed of this thread's stream.
pub(super) fn draw() -> u64 {
    let state = STREAM.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
    STREAM.set(state);
    mix(state)
}

/// A seed for what comes after the recomputation of a block that was seeded with `seed`.
pub(super) fn after(seed: u64) -> u64 {
    mix(!seed)
}

/// Runs with the stream set to `seed`, so that blocks inside the block draw the same seeds again.
pub(super) fn within<R>(seed: u64, f: impl FnOnce() -> R) -> R {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            STREAM.set(self.0);
        }
    }
    let _outer = Restore(STREAM.replace(seed));
    f()
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014).
fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_come_again() {
        STREAM.set(7);
        let first = [draw(), draw(), draw()];
        let inner = within(first[0], || [draw(), draw()]);
        let next = draw();
        STREAM.set(7);
        assert_eq!([draw(), draw(), draw()], first);
        assert_eq!(draw(), next, "an inner stream leaves the outer one alone");
        assert_eq!(within(first[0], || [draw(), draw()]), inner);
        let mut all = [&first[..], &inner[..], &[next, after(first[0])]].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 7);
    }
}
