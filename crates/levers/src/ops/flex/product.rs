//! Products of matrices in slices, and buffers that tasks write side by side.

use gemm::Parallelism;

/// A buffer that tasks write in disjoint places.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub *mut T);

// SAFETY: every task writes only its own regions.
unsafe impl<T> Send for Shared<T> {}
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// # Safety
    /// The region lies inside the buffer, and no other task touches it.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn region(&self, start: usize, len: usize) -> &mut [T] {
        unsafe { std::slice::from_raw_parts_mut(self.0.add(start), len) }
    }
}

/// A matrix in a slice: element `(i, j)` lies at `i * row + j * column`.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f32],
    row: usize,
    column: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after another.
    pub fn rows_of(values: &'a [f32], width: usize) -> Self {
        Self {
            values,
            row: width,
            column: 1,
        }
    }

    /// The same values, seen from the other side.
    pub fn transposed(self) -> Self {
        Self {
            row: self.column,
            column: self.row,
            ..self
        }
    }
}

/// `target = left * right`, or `+=` with `accumulate`; `target` has rows of `stride` values.
pub fn multiply(
    [m, n, k]: [usize; 3],
    left: Matrix,
    right: Matrix,
    target: &mut [f32],
    stride: usize,
    accumulate: bool,
) {
    let last = |matrix: &Matrix, rows: usize, columns: usize| {
        (rows - 1) * matrix.row + (columns - 1) * matrix.column
    };
    assert!(last(&left, m, k) < left.values.len() && last(&right, k, n) < right.values.len());
    assert!((m - 1) * stride + n <= target.len());
    // SAFETY: the assertions keep every element that gemm touches inside its slice.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            target.as_mut_ptr(),
            1,
            stride as isize,
            accumulate,
            left.values.as_ptr(),
            left.column as isize,
            left.row as isize,
            right.values.as_ptr(),
            right.column as isize,
            right.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
