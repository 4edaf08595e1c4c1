//! Whole streams of allocations and frees.

use cubecl_server::storage::ComputeStorage;
use proptest::prelude::*;

use super::*;

/// A forward that keeps its activations, and a backward that frees them one by one.
fn step() -> Vec<Event> {
    let sizes = [3 * MIB, 40 * MIB + 12, 40 * KIB, 7 * MIB, 90 * MIB, 1000];
    let ids: Vec<(u64, u64)> = (0..).zip(sizes).collect();
    let forward = ids.iter().map(|&(id, bytes)| Event::Allocate(id, bytes));
    let backward = ids
        .iter()
        .rev()
        .flat_map(|&(id, bytes)| [Event::Allocate(id + 100, bytes), Event::Free(id)]);
    let update = ids.iter().map(|&(id, _)| Event::Free(id + 100));
    forward.chain(backward).chain(update).collect()
}

// Trap B38: memory must be flat after the second or third step.
#[test]
fn the_same_step_again_reserves_no_more() {
    for limits in [PoolLimits::wgpu(), a100()] {
        let mut pool = Pool::new(limits);
        let weights = pool.allocate_persistent(50 * MIB).unwrap();
        let after: Vec<PoolUsage> = (0..5)
            .map(|_| {
                pool.replay(step()).unwrap();
                pool.usage()
            })
            .collect();
        assert_eq!(after[1], after[2]);
        assert_eq!(after[2], after[4]);
        assert_eq!(after[4].in_use, weights.bytes());
    }
}

#[test]
fn a_wrong_stream_is_an_error() {
    let limits = PoolLimits::default();
    let twice = [Event::Allocate(1, 8), Event::Allocate(1, 8)];
    assert_eq!(replay(limits, twice), Err(PoolError::StillLive { id: 1 }));
    let freed = [Event::Allocate(1, 8), Event::Free(1), Event::Free(1)];
    assert_eq!(replay(limits, freed), Err(PoolError::NotLive { id: 1 }));
}

/// Allocates each size, and frees the `free`-th of what is live with it.
fn run(pool: &mut Pool, stream: &[(u64, usize)], look: bool) -> Vec<Slot> {
    let mut live = Vec::new();
    for &(bytes, free) in stream {
        live.extend(pool.allocate(bytes));
        if free < live.len() {
            pool.free(live.swap_remove(free));
        }
        if look {
            pool.usage();
        }
    }
    live
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn usage_adds_up_and_looking_changes_nothing(
        stream in proptest::collection::vec((0u64..50 * MIB, 0usize..12), 1..60),
        tight: bool,
        driver in prop_oneof![Just(Driver::Wgpu), Just(Driver::Native), Just(Driver::Cuda)],
    ) {
        let capacity = Bytes(if tight { 256 * MIB } else { 8 * GIB });
        let limits = PoolLimits { driver, ..PoolLimits::cuda(capacity) };
        let (mut pool, mut looked_at) = (Pool::new(limits), Pool::new(limits));
        let live = run(&mut pool, &stream, false);
        let others = run(&mut looked_at, &stream, true);
        let usage = pool.usage();
        prop_assert_eq!(usage, looked_at.usage());
        prop_assert_eq!(live.len(), others.len());
        prop_assert_eq!(usage.in_use, Bytes(live.iter().map(|slot| slot.bytes().0).sum()));
        prop_assert!(usage.reserved.0 >= usage.in_use.0 + usage.padding.0);
        prop_assert!(usage.reserved <= capacity);
        // What the pools report is what the device counted, but for pages not yet flushed.
        let held = pool.memory.bytes_allocated();
        prop_assert!(held == usage.reserved.0 || driver == Driver::Cuda && held > usage.reserved.0);

        // The largest free block takes no page, one byte more does (a full device makes room).
        let free = usage.largest_free.map_or(0, |free| free.0);
        if free > 64 * KIB && !tight {
            let _slot = looked_at.allocate(free).unwrap();
            prop_assert!(looked_at.usage().pages <= usage.pages);
            let _over = pool.allocate(free + 1).unwrap();
            pool.memory.storage().flush();
            let added = pool.memory.bytes_allocated() > looked_at.usage().reserved.0;
            prop_assert!(added);
        }
    }
}
