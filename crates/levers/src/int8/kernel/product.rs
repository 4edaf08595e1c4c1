//! The exact product of two matrices of bytes, block by block.
//!
//! Bytes less their zero point are widened to 16 bits, in blocks that fit the caches, so that one
//! instruction multiplies a pair and adds both products in 32 bits. The widespread way with 8-bit
//! operands (`vpmaddubsw`) adds them in 16 bits and saturates.

use std::ops::Range;

use rayon::prelude::*;

use super::tile::{Machine, PAIRS, Pair, Plain, WIDTH};

/// Longest sum that can't overflow 32 bits: `255 * 127 * MAX_DEPTH < 2^31`.
pub const MAX_DEPTH: usize = 66_311;

/// Columns in a block.
const COLUMNS: usize = 256;

/// Rows in a block, a multiple of [`TALL`].
const ROWS: usize = 192;

/// Rows in a tile: twelve sums fill the registers.
const TALL: usize = 6;

/// Multiplications below which another thread isn't worth waking.
const SERIAL: usize = 1 << 18;

/// A matrix of bytes whose rows are slices.
#[derive(Clone, Copy)]
pub struct Bytes<F> {
    /// Row `i`, at least as long as the product reads.
    pub row: F,
    /// What stands for zero.
    pub zero_point: i16,
}

/// `[m, n, k]` of a product `[m, k] * [k, n]`.
pub type Size = [usize; 3];

/// Hands each row of each block of `left * right` to `write`: row, first column, sums.
///
/// `parallel` allows threads; no element is handed out twice. Panics where `k` exceeds
/// [`MAX_DEPTH`].
pub fn product<'a, L, R, F, G>(
    size: Size,
    left: &Bytes<F>,
    right: &Bytes<G>,
    parallel: bool,
    write: impl Fn(usize, usize, &[i32]) + Sync,
) where
    L: Copy + Into<i16> + 'a,
    R: Copy + Default + Into<i16> + 'a,
    F: Fn(usize) -> &'a [L] + Sync,
    G: Fn(usize) -> &'a [R] + Sync,
{
    let [m, n, k] = size;
    assert!(k <= MAX_DEPTH, "a sum of {k} products may overflow");
    if m == 0 || n == 0 {
        return;
    }
    let parallel = parallel && m * n * k >= SERIAL;
    let threads = if parallel {
        rayon::current_num_threads()
    } else {
        1
    };
    let (tall, wide) = blocks(m, n, threads);
    let across = n.div_ceil(wide);
    let count = across * m.div_ceil(tall);
    let task = |scratch: &mut Scratch, index: usize| {
        let (top, start) = (index / across * tall, index % across * wide);
        let block = Block {
            rows: top..(top + tall).min(m),
            columns: start..(start + wide).min(n),
            depth: k,
            left,
            right,
        };
        block.run(scratch);
        let stride = block.panels() * WIDTH;
        for (row, sums) in block.rows.clone().zip(scratch.sums.chunks(stride)) {
            write(row, start, &sums[..block.columns.len()]);
        }
    };
    if parallel {
        let indices = (0..count).into_par_iter();
        indices.for_each_init(Scratch::default, |scratch, index| task(scratch, index));
    } else {
        let mut scratch = Scratch::default();
        (0..count).for_each(|index| task(&mut scratch, index));
    }
}

/// Rows and columns of a block: columns are shared between the threads first, for packing a block of
/// `right` is what a block costs before its first product.
fn blocks(m: usize, n: usize, threads: usize) -> (usize, usize) {
    let across = n.div_ceil(COLUMNS).next_multiple_of(threads);
    let wide = n.div_ceil(across).next_multiple_of(WIDTH);
    let down = threads.div_ceil(n.div_ceil(wide)).max(m.div_ceil(ROWS));
    (m.div_ceil(down).next_multiple_of(TALL), wide)
}

/// One thread's buffers.
#[derive(Default)]
struct Scratch {
    /// `[panels, pairs, WIDTH]`.
    right: Vec<[Pair; WIDTH]>,
    /// `[rows, panels * WIDTH]`.
    sums: Vec<i32>,
}

struct Block<'b, F, G> {
    rows: Range<usize>,
    columns: Range<usize>,
    depth: usize,
    left: &'b Bytes<F>,
    right: &'b Bytes<G>,
}

impl<F, G> Block<'_, F, G> {
    fn panels(&self) -> usize {
        self.columns.len().div_ceil(WIDTH)
    }

    fn run<'a, L, R>(&self, scratch: &mut Scratch)
    where
        L: Copy + Into<i16> + 'a,
        R: Copy + Default + Into<i16> + 'a,
        F: Fn(usize) -> &'a [L],
        G: Fn(usize) -> &'a [R],
    {
        #[cfg(target_arch = "x86_64")]
        if let Some(machine) = pulp::x86::V3::try_new() {
            machine.vectorize(On {
                machine,
                block: self,
                scratch,
                bytes: std::marker::PhantomData::<&'a (L, R)>,
            });
            return;
        }
        self.run_on(Plain, scratch);
    }

    #[inline(always)]
    fn run_on<'a, L, R>(&self, machine: impl Machine, scratch: &mut Scratch)
    where
        L: Copy + Into<i16> + 'a,
        R: Copy + Default + Into<i16> + 'a,
        F: Fn(usize) -> &'a [L],
        G: Fn(usize) -> &'a [R],
    {
        let panels = self.panels();
        let Scratch { right, sums } = scratch;
        sums.clear();
        sums.resize(self.rows.len() * panels * WIDTH, 0);
        for start in (0..self.depth).step_by(2 * PAIRS) {
            let depth = start..(start + 2 * PAIRS).min(self.depth);
            let pairs = depth.len().div_ceil(2);
            right.resize(panels * pairs, [[0; 2]; WIDTH]);
            self.pack(depth.clone(), right);
            let tiles = sums.chunks_mut(TALL * panels * WIDTH);
            for (index, sums) in tiles.enumerate() {
                let top = self.rows.start + index * TALL;
                let tall = TALL.min(self.rows.end - top);
                let mut left = [[[0; 2]; PAIRS]; TALL];
                for (row, left) in (top..top + tall).zip(&mut left) {
                    widen(
                        &(self.left.row)(row)[depth.clone()],
                        self.left.zero_point,
                        left,
                    );
                }
                for (panel, right) in right.chunks(pairs).enumerate() {
                    let sums = &mut sums[panel * WIDTH..];
                    match tall {
                        1 => accumulate::<1>(machine, &left, right, sums, panels),
                        2 => accumulate::<2>(machine, &left, right, sums, panels),
                        3 => accumulate::<3>(machine, &left, right, sums, panels),
                        4 => accumulate::<4>(machine, &left, right, sums, panels),
                        5 => accumulate::<5>(machine, &left, right, sums, panels),
                        _ => accumulate::<6>(machine, &left, right, sums, panels),
                    }
                }
            }
        }
    }

    /// Rows `depth` of the right side, two at a time, into `[panels, pairs, WIDTH]`.
    #[inline(always)]
    fn pack<'a, R>(&self, depth: Range<usize>, packed: &mut [[Pair; WIDTH]])
    where
        R: Copy + Default + Into<i16> + 'a,
        G: Fn(usize) -> &'a [R],
    {
        let (pairs, zero) = (depth.len().div_ceil(2), self.right.zero_point);
        for pair in 0..pairs {
            let first = depth.start + 2 * pair;
            // What lies beyond an odd end meets a zero of the left side.
            let second = (first + 1).min(depth.end - 1);
            let [upper, lower] =
                [first, second].map(|row| &(self.right.row)(row)[self.columns.clone()]);
            let (above, above_rest) = upper.as_chunks();
            let (below, below_rest) = lower.as_chunks();
            let mut panels = packed.iter_mut().skip(pair).step_by(pairs);
            for ((above, below), packed) in above.iter().zip(below).zip(&mut panels) {
                interleave(above, below, zero, packed);
            }
            if let Some(packed) = panels.next() {
                let (mut above, mut below) = ([R::default(); WIDTH], [R::default(); WIDTH]);
                above[..above_rest.len()].copy_from_slice(above_rest);
                below[..below_rest.len()].copy_from_slice(below_rest);
                interleave(&above, &below, zero, packed);
            }
        }
    }
}

#[inline(always)]
fn interleave<R: Copy + Into<i16>>(
    above: &[R; WIDTH],
    below: &[R; WIDTH],
    zero: i16,
    pairs: &mut [Pair; WIDTH],
) {
    for (pair, (above, below)) in pairs.iter_mut().zip(above.iter().zip(below)) {
        *pair = [(*above).into() - zero, (*below).into() - zero];
    }
}

/// One row of the left side as pairs; an odd last one is filled up with zero.
#[inline(always)]
fn widen<L: Copy + Into<i16>>(row: &[L], zero: i16, pairs: &mut [Pair; PAIRS]) {
    let wide = pairs.as_flattened_mut();
    for (wide, value) in wide.iter_mut().zip(row) {
        *wide = (*value).into() - zero;
    }
    if row.len() % 2 == 1 {
        wide[row.len()] = 0;
    }
}

/// Adds one tile's products onto `sums`, rows of `panels * WIDTH`.
#[inline(always)]
fn accumulate<const M: usize>(
    machine: impl Machine,
    left: &[[Pair; PAIRS]; TALL],
    right: &[[Pair; WIDTH]],
    sums: &mut [i32],
    panels: usize,
) {
    let left = left.first_chunk::<M>().expect("M is at most TALL");
    let mut tile = [[0; WIDTH]; M];
    machine.multiply(left, right, &mut tile);
    for (sums, tile) in sums.chunks_mut(panels * WIDTH).zip(&tile) {
        for (sum, tile) in sums.iter_mut().zip(tile) {
            *sum += tile;
        }
    }
}

#[cfg(target_arch = "x86_64")]
struct On<'s, 'b, F, G, B> {
    machine: pulp::x86::V3,
    block: &'s Block<'b, F, G>,
    scratch: &'s mut Scratch,
    bytes: std::marker::PhantomData<B>,
}

#[cfg(target_arch = "x86_64")]
impl<'a, F, G, L, R> pulp::NullaryFnOnce for On<'_, '_, F, G, &'a (L, R)>
where
    L: Copy + Into<i16> + 'a,
    R: Copy + Default + Into<i16> + 'a,
    F: Fn(usize) -> &'a [L],
    G: Fn(usize) -> &'a [R],
{
    type Output = ();

    #[inline(always)]
    fn call(self) {
        self.block.run_on(self.machine, self.scratch);
    }
}
