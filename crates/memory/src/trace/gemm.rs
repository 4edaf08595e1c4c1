//! What the matrix products of the CPU need besides their matrices.

/// f32 values that a row-major product of `[m, k]` and `[k, n]` packs: both sides along the sum, the right one
/// whole, the left one where it is short (`gemm_basic_generic` of gemm-common 0.19, for registers of 24 x 4).
pub fn packed([m, n, k]: [usize; 3]) -> usize {
    const DEPTH: usize = 512;
    let depth = k.div_ceil(k.div_ceil(DEPTH).max(1));
    // gemm turns a row-major target around.
    let (left, right) = (n, m);
    let right = if left > 2 * 24 {
        right.next_multiple_of(4)
    } else {
        0
    };
    let left = if left <= 16 * 24 {
        left.next_multiple_of(24)
    } else {
        0
    };
    depth * (left + right)
}

/// Bytes that the products keep once they have run: a buffer as large as the second-level cache for each thread
/// (`L2_SLAB` of gemm-common 0.19).
pub fn kept() -> u64 {
    #[cfg(feature = "flex")]
    {
        let cache = gemm_common::cache::CACHE_INFO[1].cache_bytes;
        (cache * rayon::current_num_threads()) as u64
    }
    #[cfg(not(feature = "flex"))]
    0
}
