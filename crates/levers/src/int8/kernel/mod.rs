//! Exact products of uint8 and int8 on CPUs: sums in 32 bits, f32 in and out.
//!
//! Weights stay at one byte each; blocks of them are widened to 16 bits on the way.

mod conv;
mod levels;
mod linear;
mod product;
mod row;
#[cfg(test)]
mod tests;
mod tile;

pub use conv::{Conv, conv2d};
pub use linear::linear;
pub use product::MAX_DEPTH;
