//! The innermost product: a few rows by a few columns, in registers.

/// Columns in a tile.
pub const WIDTH: usize = 16;

/// Pairs of depth in a tile.
pub const PAIRS: usize = 128;

/// Two neighbours in depth.
pub type Pair = [i16; 2];

/// A way to multiply tiles.
pub trait Machine: Copy {
    /// `sums[i][j] += left[i] * right[j]` over the pairs that `right` has, at most [`PAIRS`].
    fn multiply<const M: usize>(
        self,
        left: &[[Pair; PAIRS]; M],
        right: &[[Pair; WIDTH]],
        sums: &mut [[i32; WIDTH]; M],
    );
}

/// Any machine, as well as the compiler can.
#[derive(Clone, Copy)]
pub struct Plain;

impl Machine for Plain {
    #[inline(always)]
    fn multiply<const M: usize>(
        self,
        left: &[[Pair; PAIRS]; M],
        right: &[[Pair; WIDTH]],
        sums: &mut [[i32; WIDTH]; M],
    ) {
        for (left, sums) in left.iter().zip(sums) {
            for (left, right) in left.iter().zip(right) {
                let [first, second] = left.map(i32::from);
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum += first * i32::from(right[0]) + second * i32::from(right[1]);
                }
            }
        }
    }
}

/// `vpmaddwd`: the compiler doesn't find it in the plain loops.
#[cfg(target_arch = "x86_64")]
impl Machine for pulp::x86::V3 {
    #[inline(always)]
    fn multiply<const M: usize>(
        self,
        left: &[[Pair; PAIRS]; M],
        right: &[[Pair; WIDTH]],
        sums: &mut [[i32; WIDTH]; M],
    ) {
        use std::arch::x86_64::__m256i;

        let mut wide: [[__m256i; 2]; M] = sums.map(pulp::cast);
        for (pair, right) in right[..right.len().min(PAIRS)].iter().enumerate() {
            let right: [__m256i; 2] = pulp::cast(*right);
            for (left, wide) in left.iter().zip(&mut wide) {
                let left = self.avx._mm256_set1_epi32(pulp::cast(left[pair]));
                for (wide, right) in wide.iter_mut().zip(right) {
                    let products = self.avx2._mm256_madd_epi16(left, right);
                    *wide = self.avx2._mm256_add_epi32(*wide, products);
                }
            }
        }
        *sums = wide.map(pulp::cast);
    }
}
