//! Which keys a query may not see, as booleans, a chunk at a time.

use std::ops::Range;

use burn::tensor::{Bool, Device, Int, Tensor};

/// Causal order and padded keys.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    pub causal: bool,
    /// `[batch, keys]`, true where a key is padding.
    pub padding: Option<Tensor<2, Bool>>,
    /// Position of query 0 among the keys; negative where there are more queries than keys.
    pub offset: i64,
}

impl Mask {
    /// Whether none of these queries sees any of these keys.
    pub fn hides_all(&self, queries: &Range<usize>, keys: &Range<usize>) -> bool {
        self.causal && keys.start as i64 > queries.end as i64 - 1 + self.offset
    }

    /// True where a key is hidden, `[batch, heads, queries, keys]`; `None` where all are seen.
    pub fn hidden(
        &self,
        queries: &Range<usize>,
        keys: &Range<usize>,
        [batch, heads]: [usize; 2],
        device: &Device,
    ) -> Option<Tensor<4, Bool>> {
        let shape = [batch, 1, queries.len(), keys.len()];
        let crosses = self.causal && keys.end as i64 - 1 > queries.start as i64 + self.offset;
        let later = crosses.then(|| {
            let positions = |range: &Range<usize>, shift: i64| {
                let range = range.start as i64 + shift..range.end as i64 + shift;
                Tensor::<1, Int>::arange(range, device)
            };
            let seen_until = positions(queries, self.offset).reshape([1, 1, queries.len(), 1]);
            let keys_at = positions(keys, 0).reshape([1, 1, 1, keys.len()]);
            let shape = [1, 1, queries.len(), keys.len()];
            keys_at.expand(shape).greater(seen_until.expand(shape))
        });
        let padded = self.padding.as_ref().map(|padding| {
            let padding = padding.clone().slice([0..batch, keys.clone()]);
            padding.reshape([batch, 1, 1, keys.len()])
        });
        let hidden = match (later, padded) {
            (None, None) => return None,
            (Some(later), None) => later.expand(shape),
            (None, Some(padded)) => padded.expand(shape),
            (Some(later), Some(padded)) => later.expand(shape).bool_or(padded.expand(shape)),
        };
        Some(hidden.expand([batch, heads, queries.len(), keys.len()]))
    }
}
