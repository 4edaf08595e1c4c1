//! What the pool of a device takes for a replayed trace.

use super::{Replay, Runtime};
use crate::Bytes;
use crate::pool::{Driver, Event, PoolError, PoolLimits, replay};

/// Memory of a CUDA device whose size is not known: large enough to refuse nothing.
const ANY: Bytes = Bytes(1 << 40);

/// The most that the pool reserves for all buffers of the trace; `None` on a backend without one.
///
/// # Errors
///
/// Where it refuses one, such as a buffer larger than the backend can hold in one piece.
pub(crate) fn reserved(of: &Replay, runtime: Runtime) -> Result<Option<Bytes>, PoolError> {
    let limits = match runtime {
        Runtime::Flex => return Ok(None),
        Runtime::Wgpu => PoolLimits::wgpu(),
        Runtime::Native => PoolLimits {
            driver: Driver::Native,
            ..PoolLimits::wgpu()
        },
        Runtime::Cuda => PoolLimits::cuda(ANY),
    };
    // What ends at an operation is freed behind what begins there.
    let mut events: Vec<(usize, bool, Event)> = Vec::with_capacity(2 * of.buffers.len());
    for (id, buffer) in of.buffers.iter().enumerate() {
        let id = id as u64;
        let made = match buffer.stored {
            Some(_) => Event::AllocatePersistent(id, buffer.bytes),
            None => Event::Allocate(id, buffer.bytes),
        };
        events.push((buffer.span.start, false, made));
        events.push((buffer.span.end - 1, true, Event::Free(id)));
    }
    events.sort_by_key(|(at, frees, _)| (*at, *frees));
    let usage = replay(limits, events.into_iter().map(|(_, _, event)| event))?;
    Ok(Some(usage.reserved))
}
