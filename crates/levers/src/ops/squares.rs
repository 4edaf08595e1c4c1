//! The sum of squares of a tensor in one pass, for the global gradient norm.

use burn::backend::Dispatch;
use burn::tensor::Tensor;

use super::LeanOps;

/// `sum((x * factor)^2)` as `[1]` in f32; not differentiable.
pub fn sum_of_squares<const D: usize>(x: Tensor<D>, factor: f64) -> Tensor<1> {
    Tensor::from_dispatch(Dispatch::lean_sum_of_squares(
        x.inner().into_dispatch(),
        factor as f32,
    ))
}
