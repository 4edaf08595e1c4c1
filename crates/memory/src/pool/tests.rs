mod streams;

use super::*;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn a100() -> PoolLimits {
    PoolLimits::cuda(Bytes(40 * GIB))
}

#[test]
fn an_empty_pool_holds_nothing() {
    assert_eq!(
        Pool::new(PoolLimits::default()).usage(),
        PoolUsage::default()
    );
    assert_eq!(replay(PoolLimits::default(), []), Ok(PoolUsage::default()));
}

#[test]
fn alignment_is_padding() {
    let padding_of = |limits, bytes| {
        let mut pool = Pool::new(limits);
        let slot = pool.allocate(bytes).unwrap();
        assert_eq!(slot.bytes(), Bytes(bytes));
        assert_eq!(pool.usage().in_use, Bytes(bytes));
        pool.usage().padding.0
    };
    assert_eq!(padding_of(PoolLimits::wgpu(), MIB + 1), 63);
    assert_eq!(padding_of(a100(), MIB + 1), 511);
    assert_eq!(padding_of(a100(), MIB), 0);
    assert_eq!(padding_of(a100(), 100), 412);
}

#[test]
fn pages_follow_the_largest_allocation() {
    let mut pool = Pool::new(PoolLimits::wgpu());
    // The sizes of `dynamic/adaptive.rs` and `arena.rs` in cubecl-server 0.11.3.
    let tiny = pool.allocate(0).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(0));
    let small = pool.allocate(64 * KIB).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(8 * MIB));
    let first = pool.allocate(64 * KIB + 1).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(10 * MIB));
    let large = pool.allocate(100 * MIB).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(111 * MIB));
    assert_eq!(pool.usage().pages, 4);
    assert_eq!(pool.usage().largest_free, Some(Bytes(MIB)));
    for slot in [tiny, small, first, large] {
        pool.free(slot);
    }
    assert_eq!(pool.usage().reserved, Bytes(111 * MIB));
    pool.cleanup();
    assert_eq!(pool.usage().in_use, Bytes(0));
    assert_eq!(pool.usage().reserved, Bytes(0));
}

#[test]
fn a_freed_block_is_used_again() {
    let mut pool = Pool::new(a100());
    let first = pool.allocate(10 * MIB).unwrap();
    let before = pool.usage();
    pool.free(first);
    assert_eq!(pool.usage().largest_free, Some(before.reserved));
    let second = pool.allocate(10 * MIB).unwrap();
    assert_eq!(pool.usage(), before);
    drop(second);
    assert_eq!(pool.usage().in_use, Bytes(0));
}

#[test]
fn a_persistent_allocation_has_a_page_of_its_own() {
    let mut pool = Pool::new(a100());
    let weight = pool.allocate_persistent(3 * MIB).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(3 * MIB));
    assert_eq!(pool.usage().largest_free, None);
    pool.free(weight);
    let activation = pool.allocate(3 * MIB).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(7 * MIB));
    let again = pool.allocate_persistent(3 * MIB).unwrap();
    assert_eq!(pool.usage().reserved, Bytes(7 * MIB));
    drop((activation, again));
    pool.cleanup();
    assert_eq!(pool.usage().reserved, Bytes(0));
}

// Traps B39 and B40: more than a buffer may have, 411041792 and 4395368448 bytes among them.
#[test]
fn above_the_limits_is_an_error_that_says_what_to_do() {
    let small = PoolLimits {
        max_page_size: Bytes(128 * MIB),
        ..PoolLimits::wgpu()
    };
    for (limits, bytes) in [
        (small, 411_041_792),
        (PoolLimits::wgpu(), 4_395_368_448),
        (PoolLimits::wgpu(), 2 * GIB),
        (PoolLimits::wgpu(), u64::MAX),
        (a100(), 10 * GIB + 1),
        (a100(), u64::MAX),
    ] {
        let mut pool = Pool::new(limits);
        let error = pool.allocate(bytes).unwrap_err();
        assert!(matches!(error, PoolError::TooLarge { .. }), "{error:?}");
        assert!(error.to_string().contains("make the batch smaller"));
        assert_eq!(pool.usage(), PoolUsage::default());
    }
    assert!(Pool::new(a100()).allocate(10 * GIB).is_ok());
    assert!(Pool::new(a100()).allocate_persistent(11 * GIB).is_ok());
    for limits in [a100(), PoolLimits::wgpu()] {
        assert!(Pool::new(limits).allocate_persistent(u64::MAX).is_err());
    }
}

#[test]
fn senseless_limits_do_not_panic() {
    for (max_page_size, alignment) in [(0, 0), (1, 7), (u64::MAX, 1), (3 * MIB, u64::MAX)] {
        let mut pool = Pool::new(PoolLimits {
            max_page_size: Bytes(max_page_size),
            alignment: Bytes(alignment),
            capacity: Some(Bytes(GIB)),
            ..PoolLimits::wgpu()
        });
        for bytes in [0, 1, 100 * KIB, 5 * MIB, u64::MAX] {
            let _ = pool.allocate(bytes);
            let _ = pool.usage();
        }
    }
}

// Trap B36: 4 GiB are free, and 2 GiB do not fit.
#[test]
fn free_bytes_in_pieces_do_not_serve_a_large_allocation() {
    let limits = PoolLimits::cuda(Bytes(10 * GIB));
    let mut pool = Pool::new(limits);
    let whole = pool.allocate(2 * GIB).unwrap();
    pool.free(whole);
    let mut halves: Vec<Slot> = (0..8).map(|_| pool.allocate(GIB).unwrap()).collect();
    assert_eq!(pool.usage().pages, 4);
    let mut keep = false;
    halves.retain(|_| {
        keep = !keep;
        keep
    });
    let usage = pool.usage();
    assert_eq!(usage.in_use, Bytes(4 * GIB));
    assert_eq!(usage.reserved, Bytes(4 * (2 * GIB + MIB)));
    assert_eq!(usage.largest_free, Some(Bytes(GIB + MIB)));

    let error = pool.allocate(2 * GIB).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, PoolError::OutOfMemory { usage: at, .. } if at == usage));
    assert!(text.contains("largest free block"), "{text}");
    assert!(pool.allocate(GIB).is_ok());
}

#[test]
fn alternating_sizes_reserve_more_than_they_use() {
    let events = (0..6).flat_map(|turn| {
        [
            Event::Allocate(2 * turn, GIB),
            Event::Allocate(2 * turn + 1, 2 * GIB),
            Event::Free(2 * turn + 1),
        ]
    });
    let peak = replay(PoolLimits::cuda(Bytes(80 * GIB)), events).unwrap();
    assert!(peak.reserved > peak.in_use, "{peak:?}");
    assert!(peak.largest_free >= Some(Bytes(GIB)), "{peak:?}");
}
