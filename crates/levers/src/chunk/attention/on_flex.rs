//! Attention by the CPU's own kernels.

mod heads;
mod kernel;

use burn::backend::{DispatchTensor, Flex};
use burn::tensor::Tensor;

use super::{Computation, is_flex};
use crate::ops::Pass;
use crate::ops::flex::by_dtype;
use crate::ops::{dispatch, primitive};
use kernel::{Spec, backward as gradients, forward as outputs};

fn spec(pass: &Computation) -> Spec<'_> {
    let padding = pass.mask.padding.clone();
    Spec {
        pass,
        padding: padding.map(|padding| padding.into_data().iter::<bool>().collect()),
    }
}

/// Bytes that the heads at work need besides the tensors, for queries and keys `[batch, heads, tokens, width]`.
pub fn workspace(computation: &Computation, shapes: [[usize; 4]; 2], pass: Pass) -> u64 {
    let [[batch, heads, queries, width], [_, _, keys, _]] = shapes;
    let chunk = |tokens: usize, size: usize| if size == 0 { tokens } else { tokens.min(size) };
    let (rows, columns) = (
        chunk(queries, computation.chunks.queries),
        chunk(keys, computation.chunks.keys),
    );
    let floats = match pass {
        // Keys and values; scaled queries and their mean; scores.
        Pass::Forward => width * (2 * keys + 2 * rows) + rows * columns,
        // Besides, three gradients; queries, output and its gradient; weights and slopes.
        Pass::Backward => width * (queries + 4 * keys + 3 * rows) + 2 * rows * columns,
    };
    let at_work = rayon::current_num_threads().min(batch * heads);
    (4 * floats * at_work) as u64
}

fn flex(x: Tensor<4>) -> burn::backend::tensor::FloatTensor<Flex> {
    primitive::<Flex>(x.into_dispatch()).expect("on flex")
}

pub fn forward(pass: &Computation, inputs: &[Tensor<4>; 3]) -> Option<(Tensor<4>, Tensor<4>)> {
    if !is_flex(&inputs[0]) {
        return None;
    }
    let dtype = inputs[0].dtype();
    let inputs = inputs.clone().map(flex);
    let (output, logarithms) = by_dtype!(dtype, E => outputs::<E>(inputs, &spec(pass)));
    let tensor = |x| Tensor::from_dispatch(dispatch::<Flex>(x));
    Some((tensor(output), tensor(logarithms)))
}

pub fn backward(
    pass: &Computation,
    inputs: [Tensor<4>; 3],
    output_and_gradient: [Tensor<4>; 2],
    logarithms: Tensor<4>,
    packed: bool,
) -> Vec<DispatchTensor> {
    let dtype = inputs[0].dtype();
    let (inputs, outer) = (inputs.map(flex), output_and_gradient.map(flex));
    let logarithms = flex(logarithms);
    let all =
        by_dtype!(dtype, E => gradients::<E>(inputs, outer, &logarithms, &spec(pass), packed));
    let all = all.into_iter().map(dispatch::<Flex>);
    match packed {
        false => all.collect(),
        true => all
            .map(|one| {
                Tensor::<5>::from_dispatch(one)
                    .flatten::<3>(2, 4)
                    .into_dispatch()
            })
            .collect(),
    }
}
