//! Taking room as a runtime does, making it before the device is full, and finding what there is.

use std::sync::atomic::Ordering::Relaxed;

use cubecl_server::{
    memory_management::{
        ManagedMemoryHandle, MemoryPoolKind, PageUpdate,
        relocation::{RelocationNeed, RelocationReason},
    },
    server::IoError,
};

use super::{Pool, PoolError, Slot, device::NoCopies};
use crate::Bytes;

impl Pool {
    /// Takes `requested` bytes in the mode in force, as the runtime does.
    pub(super) fn take(&mut self, requested: Bytes, limit: Bytes) -> Result<Slot, PoolError> {
        // Before the size is rounded, so that none can wrap.
        if requested > limit {
            return Err(PoolError::TooLarge { requested, limit });
        }
        let rounded = requested.0.next_multiple_of(self.limits.alignment.0);
        self.relocate_when_wanted();
        let reserved = match self.reserve(rounded) {
            Err(refusal) if self.limits.driver.retries() && refusal.may_succeed_after_reclaim() => {
                self.make_room(&refusal);
                self.reserve(rounded)
            }
            reserved => reserved,
        };
        match reserved {
            Ok(handle) => {
                let padding = rounded - requested.0;
                self.padding.fetch_add(padding, Relaxed);
                Ok(Slot {
                    _handle: handle,
                    bytes: requested,
                    padding,
                    padding_of_all: self.padding.clone(),
                })
            }
            Err(refusal) => {
                let usage = self.usage();
                Err(PoolError::of(refusal, requested, &self.limits, usage))
            }
        }
    }

    fn reserve(&mut self, bytes: u64) -> Result<ManagedMemoryHandle, IoError> {
        self.memory
            .reserve(bytes, PageUpdate::Allow, &mut self.failures)
    }

    /// What every runtime does before it reserves (cubecl-server 0.11.3,
    /// `RelocatingStreams::relocate_when_wanted`).
    fn relocate_when_wanted(&mut self) {
        let need = self.memory.relocation_need();
        if need == RelocationNeed::Nothing {
            return;
        }
        if let Some(reason) = need.reason(|| self.memory.bytes_allocated()) {
            self.relocate(reason);
        }
    }

    /// What CUDA does before it tries once more (`Command::make_room`).
    fn make_room(&mut self, refusal: &IoError) {
        match refusal {
            IoError::PageSizesExhausted { .. } => self.relocate(RelocationReason::ArenaFull),
            _ => self.cleanup(),
        }
    }

    pub(super) fn relocate(&mut self, reason: RelocationReason) {
        if self.memory.has_outdated() {
            self.memory
                .relocate(&mut NoCopies, reason, &mut self.failures);
        }
    }

    /// The largest size the pools serve from the pages they hold.
    pub(super) fn largest_free(&mut self) -> Option<Bytes> {
        let (small, page) = self.routes()?;
        // Two searches, as small sizes have pages of their own: either may have room alone.
        self.largest_between(small, page)
            .or_else(|| self.largest_between(0, small))
    }

    /// The largest size with pages of its own for small sizes, and the size of the other pages.
    fn routes(&self) -> Option<(u64, u64)> {
        let dynamic = self.memory.memory_report().dynamic;
        let small = dynamic.iter().find_map(|pool| match pool.kind {
            MemoryPoolKind::Sliced { max_slice_size, .. } => Some(max_slice_size),
            _ => None,
        })?;
        let page = dynamic.iter().find_map(|pool| match pool.kind {
            MemoryPoolKind::Adaptive { page_size, .. } => Some(page_size),
            _ => None,
        })?;
        Some((small, page))
    }

    /// The largest multiple of the alignment in `low + 1 ..= high` that the held pages serve.
    fn largest_between(&mut self, low: u64, high: u64) -> Option<Bytes> {
        let alignment = self.limits.alignment.0;
        let (mut fits, mut too_large) = (low / alignment, high / alignment + 1);
        let start = fits;
        while fits + 1 < too_large {
            let middle = fits + (too_large - fits) / 2;
            match self.holds(middle * alignment) {
                true => fits = middle,
                false => too_large = middle,
            }
        }
        (fits > start).then_some(Bytes(fits * alignment))
    }

    /// Whether the held pages serve `bytes`: takes them and lets them go again.
    fn holds(&mut self, bytes: u64) -> bool {
        // cubecl neither cleans up, moves nor adds a page under `Forbidden`.
        self.memory
            .reserve(bytes, PageUpdate::Forbidden, &mut self.failures)
            .is_ok()
    }
}
