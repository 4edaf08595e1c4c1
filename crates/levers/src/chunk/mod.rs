//! Chunking: the tensors that grow with the square of a sequence, or with tokens x vocabulary, exist a
//! piece at a time.
//!
//! | operation | keeps for the backward | Burn keeps |
//! |---|---|---|
//! | [`Attention`] | its inputs, its output, one f32 a query and head | scores and their softmax, `[batch, heads, queries, keys]` |
//! | [`CrossEntropy`] | the gradients for its inputs | logits and their log-softmax, `[tokens, vocabulary]` |

pub mod attention;
pub mod cross_entropy;
mod mask;

pub use attention::Attention;
pub use cross_entropy::CrossEntropy;

use std::ops::Range;

/// Consecutive ranges of `size`, the last one shorter; one range where `size` is 0.
fn ranges(len: usize, size: usize) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    let size = if size == 0 { len.max(1) } else { size };
    (0..len.div_ceil(size)).map(move |index| index * size..((index + 1) * size).min(len))
}
