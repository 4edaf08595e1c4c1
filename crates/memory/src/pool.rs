//! What a device's memory pool will reserve for a stream of allocations and frees, without the
//! device.
//!
//! The pools are cubecl's own ([`MemoryManagement`], cubecl-server 0.11.3), in the configuration
//! that the wgpu and the CUDA runtime give their main memory ([`MemoryConfiguration::default`]);
//! only the device under them is replaced by one that counts pages. All sizes are bytes.
//!
//! Of what a device holds, three things are not here: wgpu's staging and uniform buffers and
//! CUDA's pinned ones, the driver's context, and the other streams (each has pools of its own).
//! A freed [`Slot`] is reusable at once, and events come in the order given. A device keeps a block
//! until the last kernel that reads it is submitted, and its host may free before the server has
//! made an earlier allocation, so there the same events can reserve some pages more or fewer.
//! Sizes are rounded up to the alignment before the pools are asked, as every runtime does to a
//! tensor; so where a device reports bytes in use, their padding is among them.
//!
//! ```
//! use leanburn_memory::pool::{Pool, PoolLimits};
//!
//! let mut pool = Pool::new(PoolLimits::wgpu());
//! let activations = pool.allocate(100 << 20)?;
//! assert_eq!(pool.usage().reserved.0, 101 << 20);
//! pool.free(activations);
//! assert_eq!(pool.usage().in_use.0, 0);
//! # Ok::<(), leanburn_memory::pool::PoolError>(())
//! ```

mod device;
mod error;
mod limits;
mod replay;
mod room;
#[cfg(test)]
mod tests;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use cubecl_server::{
    logging::ServerLogger,
    memory_management::{
        Cleanup, ErrorGraph, ManagedMemoryHandle, MemoryAllocationMode, MemoryConfiguration,
        MemoryManagement, MemoryManagementOptions, relocation::RelocationReason,
    },
};

use crate::Bytes;
use device::CountedDevice;

pub use error::PoolError;
pub use limits::{Driver, PoolLimits};
pub use replay::{Event, replay};

/// The memory pools of one stream of one device.
///
/// The first pool of a process reads cubecl's global configuration (its persistent memory policy
/// shapes the pools, as on a device): set that configuration, where you do, before.
pub struct Pool {
    limits: PoolLimits,
    memory: MemoryManagement<CountedDevice>,
    /// No kernel ever fails here, so it stays empty; cubecl wants one all the same.
    failures: ErrorGraph,
    padding: Arc<AtomicU64>,
}

/// One live allocation of a [`Pool`]; dropping it frees it, as [`Pool::free`] does.
#[derive(Debug)]
#[must_use = "an allocation that nothing holds is free again"]
pub struct Slot {
    // Held for its reference count alone: the pool looks at it to tell what is live.
    _handle: ManagedMemoryHandle,
    bytes: Bytes,
    padding: u64,
    /// The padding of all that is live in the pool.
    padding_of_all: Arc<AtomicU64>,
}

impl Slot {
    /// The bytes that were asked for.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.padding_of_all.fetch_sub(self.padding, Relaxed);
    }
}

/// What the pools hold at one moment.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// The bytes asked for, of what is live.
    pub in_use: Bytes,
    /// What the alignment adds to those.
    pub padding: Bytes,
    /// Everything taken from the device, free blocks and padding included.
    pub reserved: Bytes,
    /// The buffers taken from the device.
    pub pages: usize,
    /// The largest allocation that takes nothing more from the device. `None` where even the
    /// smallest would.
    pub largest_free: Option<Bytes>,
}

impl Pool {
    /// Pools that hold nothing yet.
    pub fn new(limits: PoolLimits) -> Pool {
        let limits = limits.sane();
        let memory = MemoryManagement::from_configuration(
            CountedDevice::new(&limits),
            &limits.properties(),
            MemoryConfiguration::default(),
            Arc::new(ServerLogger::default()),
            MemoryManagementOptions::new("Predicted GPU Memory"),
        );
        Pool {
            limits,
            memory,
            failures: ErrorGraph::default(),
            padding: Arc::default(),
        }
    }

    /// Takes `bytes` from the pools, as an activation, a gradient or a kernel's workspace does.
    ///
    /// # Errors
    ///
    /// [`PoolError::TooLarge`] above the limits, and [`PoolError::OutOfMemory`] where the device
    /// has no room for the page it takes.
    pub fn allocate(&mut self, bytes: u64) -> Result<Slot, PoolError> {
        let limit = self.limits.max_page_size;
        self.take(Bytes(bytes), limit)
    }

    /// Takes `bytes` as Burn takes a parameter: a buffer of its own, of that size, reused only
    /// for the same size and kept until [`cleanup`](Self::cleanup).
    ///
    /// # Errors
    ///
    /// Those of [`allocate`](Self::allocate); CUDA has no limit here but its memory.
    pub fn allocate_persistent(&mut self, bytes: u64) -> Result<Slot, PoolError> {
        let limit = self.limits.max_persistent();
        self.memory.mode(MemoryAllocationMode::Persistent);
        let slot = self.take(Bytes(bytes), limit);
        self.memory.mode(MemoryAllocationMode::Auto);
        slot
    }

    /// Frees `slot`: its bytes serve later allocations, its page stays reserved.
    pub fn free(&mut self, slot: Slot) {
        drop(slot);
    }

    /// What the pools hold now. Looking changes nothing of what they will do.
    pub fn usage(&mut self) -> PoolUsage {
        PoolUsage {
            largest_free: self.largest_free(),
            ..self.totals()
        }
    }

    /// Gives back every page that holds nothing live, as `Device::memory_cleanup` does.
    pub fn cleanup(&mut self) {
        self.relocate(RelocationReason::Explicit);
        self.memory.cleanup(Cleanup::Explicit, &mut self.failures);
    }

    /// The usage without the largest free block, which takes a search.
    fn totals(&self) -> PoolUsage {
        let report = self.memory.memory_report();
        let usage = report.usage();
        let pools = report
            .dynamic
            .iter()
            .chain([&report.persistent, &report.dedicated]);
        let padding = Bytes(self.padding.load(Relaxed));
        PoolUsage {
            in_use: Bytes(usage.bytes_in_use).saturating_sub(padding),
            padding,
            reserved: Bytes(usage.bytes_reserved),
            pages: pools.map(|pool| pool.pages as usize).sum(),
            largest_free: None,
        }
    }
}
