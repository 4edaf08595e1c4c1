//! A stream of allocations and frees, and the most its pools reserve.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Pool, PoolError, PoolLimits, PoolUsage};

/// One event of a stream; ids name allocations and may be used again once freed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// `Allocate(id, bytes)`: see [`Pool::allocate`].
    Allocate(u64, u64),
    /// `AllocatePersistent(id, bytes)`: see [`Pool::allocate_persistent`].
    AllocatePersistent(u64, u64),
    /// `Free(id)`.
    Free(u64),
}

/// Replays `events` on pools that hold nothing, and says what they held at their peak.
///
/// # Errors
///
/// Those of [`Pool::replay`].
pub fn replay(
    limits: PoolLimits,
    events: impl IntoIterator<Item = Event>,
) -> Result<PoolUsage, PoolError> {
    Pool::new(limits).replay(events)
}

impl Pool {
    /// Replays `events` on what these pools hold, frees what the events leave, and says what the
    /// pools held at their peak: when they first reserved most and, of that, had most in use.
    ///
    /// Replaying the same step again tells whether its memory grows.
    ///
    /// # Errors
    ///
    /// The first allocation's that is refused, [`PoolError::NotLive`] for a free of what is not
    /// live, and [`PoolError::StillLive`] for an id allocated twice.
    pub fn replay(
        &mut self,
        events: impl IntoIterator<Item = Event>,
    ) -> Result<PoolUsage, PoolError> {
        let mut live = HashMap::new();
        let mut peak = self.usage();
        for event in events {
            let (id, slot) = match event {
                Event::Free(id) => {
                    let slot = live.remove(&id).ok_or(PoolError::NotLive { id })?;
                    self.free(slot);
                    continue;
                }
                Event::Allocate(id, bytes) => (id, self.allocate(bytes)?),
                Event::AllocatePersistent(id, bytes) => (id, self.allocate_persistent(bytes)?),
            };
            match live.entry(id) {
                Entry::Occupied(_) => return Err(PoolError::StillLive { id }),
                Entry::Vacant(entry) => entry.insert(slot),
            };
            let now = self.totals();
            if (now.reserved, now.in_use) > (peak.reserved, peak.in_use) {
                peak = self.usage();
            }
        }
        Ok(peak)
    }
}
