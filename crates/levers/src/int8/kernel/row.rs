//! The product of one row, which reads every weight once and packs none.

use rayon::prelude::*;

/// Columns summed at a time; their sums stay in the nearest cache.
const COLUMNS: usize = 512;

/// Multiplications below which another thread isn't worth waking.
const SERIAL: usize = 1 << 17;

/// Hands `sum_i left[i] * right[i, o]` for runs of columns `o` to `write`: first column, sums. `right` has rows of
/// `width`.
pub fn row(left: &[i32], right: &[i8], width: usize, write: impl Fn(usize, &[i32]) + Sync) {
    let task = |start: usize| {
        let mut sums = [0; COLUMNS];
        let sums = &mut sums[..COLUMNS.min(width - start)];
        pulp::Arch::new().dispatch(Sums {
            left,
            right,
            width,
            start,
            sums,
        });
        write(start, sums);
    };
    let blocks = (0..width.div_ceil(COLUMNS)).map(|block| block * COLUMNS);
    match left.len() * width >= SERIAL {
        true => blocks.collect::<Vec<_>>().into_par_iter().for_each(task),
        false => blocks.for_each(task),
    }
}

/// A struct and not a closure, so that it is certain to be compiled for the machine.
struct Sums<'a> {
    left: &'a [i32],
    right: &'a [i8],
    width: usize,
    start: usize,
    sums: &'a mut [i32],
}

impl pulp::NullaryFnOnce for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (left, right) in self.left.iter().zip(self.right.chunks_exact(self.width)) {
            // Behind a ReLU, every other one.
            if *left == 0 {
                continue;
            }
            let right = &right[self.start..][..self.sums.len()];
            for (sum, right) in self.sums.iter_mut().zip(right) {
                *sum += left * i32::from(*right);
            }
        }
    }
}
