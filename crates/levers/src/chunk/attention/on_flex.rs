//! Attention by the CPU's own kernels.

mod heads;
mod kernel;

use burn::backend::{DispatchTensor, Flex};
use burn::tensor::Tensor;

use super::{Pass, is_flex};
use crate::ops::flex::by_dtype;
use crate::ops::{dispatch, primitive};
use kernel::{Spec, backward as gradients, forward as outputs};

fn spec(pass: &Pass) -> Spec<'_> {
    let padding = pass.mask.padding.clone();
    Spec {
        pass,
        padding: padding.map(|padding| padding.into_data().iter::<bool>().collect()),
    }
}

fn flex(x: Tensor<4>) -> burn::backend::tensor::FloatTensor<Flex> {
    primitive::<Flex>(x.into_dispatch()).expect("on flex")
}

pub fn forward(pass: &Pass, inputs: &[Tensor<4>; 3]) -> Option<(Tensor<4>, Tensor<4>)> {
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
    pass: &Pass,
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
