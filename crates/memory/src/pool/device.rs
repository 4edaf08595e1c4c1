//! A device that allocates nothing and counts what it would hold.

use std::collections::HashMap;

use cubecl_server::{
    memory_management::relocation::{CopyQueue, StorageCopy},
    server::{IoError, ServerError},
    storage::{ComputeStorage, StorageHandle, StorageId, StorageUtilization},
};

use super::PoolLimits;

/// The storage under the pools: sizes of pages, no bytes behind them.
pub(super) struct CountedDevice {
    pages: HashMap<StorageId, u64>,
    /// The pages given back, where the driver takes them at the next flush only.
    given_back: Vec<StorageId>,
    defers_frees: bool,
    held: u64,
    capacity: u64,
    alignment: usize,
}

impl CountedDevice {
    pub(super) fn new(limits: &PoolLimits) -> CountedDevice {
        CountedDevice {
            pages: HashMap::new(),
            given_back: Vec::new(),
            defers_frees: limits.driver.defers_frees(),
            held: 0,
            capacity: limits.capacity.map_or(u64::MAX, |capacity| capacity.0),
            alignment: limits.alignment.0 as usize,
        }
    }

    fn release(&mut self, id: StorageId) {
        self.held -= self.pages.remove(&id).unwrap_or(0);
    }
}

impl ComputeStorage for CountedDevice {
    // Nothing here ever reads or writes a byte.
    type Resource = ();

    fn alignment(&self) -> usize {
        self.alignment
    }

    fn get(&mut self, _: &StorageHandle) -> Result<(), IoError> {
        Ok(())
    }

    fn alloc(&mut self, size: u64) -> Result<StorageHandle, IoError> {
        let held = self.held.saturating_add(size);
        if held > self.capacity {
            return Err(IoError::OutOfMemory {
                size,
                backtrace: Default::default(),
            });
        }
        let id = StorageId::new();
        self.held = held;
        self.pages.insert(id, size);
        let whole = StorageUtilization { offset: 0, size };
        Ok(StorageHandle::new(id, whole))
    }

    fn dealloc(&mut self, id: StorageId) {
        match self.defers_frees {
            true => self.given_back.push(id),
            false => self.release(id),
        }
    }

    fn flush(&mut self) {
        for id in std::mem::take(&mut self.given_back) {
            self.release(id);
        }
    }

    fn bytes_allocated(&self) -> u64 {
        self.held
    }
}

/// Moves nothing, at once: there are no bytes.
pub(super) struct NoCopies;

impl CopyQueue<CountedDevice> for NoCopies {
    fn wait_device(&mut self) -> Result<(), ServerError> {
        Ok(())
    }

    fn copy(&mut self, _: &mut CountedDevice, _: &StorageCopy) -> Result<(), IoError> {
        Ok(())
    }

    fn wait_copies(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
}
