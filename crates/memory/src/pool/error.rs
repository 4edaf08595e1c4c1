//! Why an allocation is refused, and what to do then.

use cubecl_server::server::IoError;
use thiserror::Error;

use super::{PoolLimits, PoolUsage};
use crate::Bytes;

/// Why the pools cannot serve an allocation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// No page of the device holds it, however empty the device is.
    #[error(
        "an allocation of {requested} is larger than the largest buffer of this device, {limit}: \
         make the batch smaller, accumulate gradients over smaller batches, or split the layer"
    )]
    TooLarge {
        /// The bytes asked for.
        requested: Bytes,
        /// The most that one allocation may have.
        limit: Bytes,
    },
    /// The device has no room for the page it needs.
    #[error(
        "an allocation of {requested} needs a new page, and the device of {capacity} is full: the \
         pool reserves {reserved}, of which {in_use} is in use and the largest free block is \
         {largest_free}: make the batch smaller, recompute activations, or allocate the largest \
         tensors first", reserved = usage.reserved, in_use = usage.in_use,
        largest_free = usage.largest_free.unwrap_or_default()
    )]
    OutOfMemory {
        /// The bytes asked for.
        requested: Bytes,
        /// The device's memory.
        capacity: Bytes,
        /// What the pools held when it was refused.
        usage: PoolUsage,
    },
    /// The pools refuse for another reason of their own.
    #[error(
        "an allocation of {requested} is refused by the pool ({reason}): free what is no longer \
         needed, or allocate the largest tensors first"
    )]
    Refused {
        /// The bytes asked for.
        requested: Bytes,
        /// cubecl's reason.
        reason: String,
    },
    /// A replayed stream frees an id that is not live.
    #[error("the stream frees allocation {id}, which is not live: free what was allocated, once")]
    NotLive {
        /// The id.
        id: u64,
    },
    /// A replayed stream allocates an id that is live.
    #[error("the stream allocates {id} twice: free it first, or give each allocation its own id")]
    StillLive {
        /// The id.
        id: u64,
    },
}

impl PoolError {
    pub(super) fn of(
        refusal: IoError,
        requested: Bytes,
        limits: &PoolLimits,
        usage: PoolUsage,
    ) -> PoolError {
        match refusal {
            IoError::BufferTooBig { .. } => PoolError::TooLarge {
                requested,
                limit: limits.max_page_size,
            },
            IoError::OutOfMemory { .. } => PoolError::OutOfMemory {
                requested,
                capacity: limits.capacity.unwrap_or_default(),
                usage,
            },
            // Its text ends in a backtrace, of no use to whoever reads this.
            other => PoolError::Refused {
                requested,
                reason: other.to_string().lines().next().unwrap_or_default().into(),
            },
        }
    }
}
