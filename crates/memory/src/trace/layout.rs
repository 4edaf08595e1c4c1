//! Where the elements of a tensor lie in its buffer.

use burn::tensor::Slice;

/// Strides of a view, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    pub shape: Vec<usize>,
    strides: Vec<isize>,
    /// Whether the first element is the buffer's first.
    at_start: bool,
}

impl Layout {
    pub fn contiguous(shape: &[usize]) -> Self {
        let mut strides = vec![1isize; shape.len()];
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = strides[dim] * shape[dim].max(1) as isize;
        }
        Self {
            shape: shape.to_vec(),
            strides,
            at_start: true,
        }
    }

    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&dim, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if dim != 1 && stride != expected {
                return false;
            }
            expected *= dim as isize;
        }
        true
    }

    /// Whether an operation may write its result here: contiguous from the buffer's first element.
    pub fn is_dense(&self) -> bool {
        self.at_start && self.is_contiguous()
    }

    /// Whether neighbours in a row are neighbours in memory.
    pub fn is_in_rows(&self) -> bool {
        self.strides.last().is_none_or(|stride| *stride == 1)
    }

    /// The same elements in another shape, where no copy is needed for it.
    pub fn reshape(&self, shape: &[usize]) -> Option<Self> {
        self.is_contiguous().then(|| Self {
            at_start: self.at_start,
            ..Self::contiguous(shape)
        })
    }

    pub fn permute(&self, axes: &[usize]) -> Self {
        Self {
            shape: axes.iter().map(|&axis| self.shape[axis]).collect(),
            strides: axes.iter().map(|&axis| self.strides[axis]).collect(),
            at_start: self.at_start,
        }
    }

    pub fn swap(&self, a: usize, b: usize) -> Self {
        let mut axes: Vec<usize> = (0..self.shape.len()).collect();
        axes.swap(a, b);
        self.permute(&axes)
    }

    /// Repeats dimensions of 1.
    pub fn expand(&self, shape: &[usize]) -> Self {
        let new = shape.len() - self.shape.len();
        let stride = |dim: usize| match dim.checked_sub(new) {
            Some(old) if self.shape[old] == shape[dim] => self.strides[old],
            _ => 0,
        };
        Self {
            shape: shape.to_vec(),
            strides: (0..shape.len()).map(stride).collect(),
            at_start: self.at_start,
        }
    }

    /// `shape` is that of the result.
    pub fn slice(&self, ranges: &[Slice], shape: &[usize]) -> Self {
        let steps = ranges.iter().map(|range| range.step);
        let strides = self.strides.iter().zip(steps.chain(std::iter::repeat(1)));
        Self {
            shape: shape.to_vec(),
            strides: strides.map(|(stride, step)| stride * step).collect(),
            at_start: self.at_start && ranges.iter().all(|range| range.start == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_know_whether_they_are_contiguous() {
        let layout = Layout::contiguous(&[2, 3, 4]);
        assert!(layout.is_dense());
        let swapped = layout.swap(1, 2);
        assert_eq!(swapped.shape, [2, 4, 3]);
        assert!(!swapped.is_contiguous() && swapped.reshape(&[24]).is_none());
        assert!(swapped.swap(1, 2).is_dense());
        let rows = layout.slice(&[Slice::from(1..2)], &[1, 3, 4]);
        assert!(rows.is_contiguous() && !rows.is_dense());
        let columns = layout.slice(&[Slice::from(0..2), Slice::from(0..2)], &[2, 2, 4]);
        assert!(!columns.is_contiguous());
        assert!(!Layout::contiguous(&[1, 4]).expand(&[3, 4]).is_contiguous());
        assert!(layout.reshape(&[6, 4]).unwrap().is_dense());
    }
}
