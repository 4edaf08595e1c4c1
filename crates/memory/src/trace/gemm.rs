//! What the matrix products of the CPU need besides their matrices.

/// Values of a register tile, across the columns and down the rows of a row-major product.
const TILE: [usize; 2] = [24, 4];
/// Lanes of a register.
const LANES: usize = 8;
/// The longest stretch of a sum that is packed at once.
const DEPTH: usize = 512;

/// f32 values that a row-major product of `[m, k]` and `[k, n]` packs, where `in_rows` says which of the two
/// lie row by row (`gemm_basic_generic` of gemm-common 0.19, on x86-64 with AVX2).
///
/// A side that lies along the registers is read where it is: the left one up to 3072 columns, the right one
/// where the columns fill whole registers.
pub fn packed(sizes: [usize; 3], in_rows: [bool; 2]) -> usize {
    let least = match in_rows[0] {
        true => 128 * TILE[0],
        false => 2 * TILE[0],
    };
    packed_beyond(least, sizes, in_rows[1])
}

/// The same for matrices of f16, whose left side is always widened into the packed one (gemm-f16 0.19).
pub fn packed_f16(sizes: [usize; 3], right_in_rows: bool) -> usize {
    packed_beyond(0, sizes, right_in_rows)
}

/// With the left side packed where there are more than `least` columns.
fn packed_beyond(least: usize, [m, n, k]: [usize; 3], right_in_rows: bool) -> usize {
    let depth = k.div_ceil(k.div_ceil(DEPTH).max(1));
    let left = if n > least {
        m.next_multiple_of(TILE[1])
    } else {
        0
    };
    let right = match packs_right(n, right_in_rows) {
        true => n.next_multiple_of(TILE[0]),
        false => 0,
    };
    depth * (left + right)
}

/// Whether a product runs on the thread that asks for it (`get_parallelism` of burn-flex 0.22.1) and packs
/// into that thread's buffer.
pub fn uses_buffer([m, n, k]: [usize; 3], right_in_rows: bool) -> bool {
    m.saturating_mul(n).saturating_mul(k) < 192 * 192 * 192 && !packs_right(n, right_in_rows)
}

/// Whether the right side is packed before the product begins.
fn packs_right(n: usize, in_rows: bool) -> bool {
    n <= 16 * TILE[0] && !(in_rows && n.is_multiple_of(LANES))
}

/// Bytes of the buffer that a thread keeps once it had products: as large as the second-level cache (`L2_SLAB`
/// of gemm-common 0.19).
pub fn buffer() -> u64 {
    #[cfg(feature = "flex")]
    return gemm_common::cache::CACHE_INFO[1].cache_bytes as u64;
    #[cfg(not(feature = "flex"))]
    return 0;
}

/// Threads of the pool that products run on.
pub fn threads() -> u64 {
    #[cfg(feature = "flex")]
    return rayon::current_num_threads() as u64;
    #[cfg(not(feature = "flex"))]
    return 1;
}
