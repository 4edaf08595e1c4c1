//! Linear layer that keeps its input, and the weight only as it is stored.

use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::nn::Linear;
use burn::tensor::{FloatDType, Tensor};

use super::{InputGradients, LeanOps, Made, Rule};
use crate::precision::CastTo;

/// Applies a Burn [`Linear`] to `x` `[..., in]`.
///
/// With a [`Policy`](crate::Policy) attached to the layer, `x` is cast to the compute dtype and the
/// f32 weight is cast inside the operation, so that no half-precision copy of it is kept.
pub fn linear<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let Some(cast) = layer.weight.reparameterization::<CastTo>() else {
        return apply(
            x,
            layer.weight.val(),
            layer.bias.as_ref().map(|bias| bias.val()),
        );
    };
    let bias = layer.bias.as_ref().map(|bias| bias.base());
    apply(cast.input(x), layer.weight.base(), bias)
}

fn apply<const D: usize>(x: Tensor<D>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<D> {
    let mut shape = x.dims();
    let [width_in, width_out] = weight.dims();
    let rows = x.reshape([-1, width_in as i64]).into_dispatch();
    let (weight, rule) = (weight.into_dispatch(), Arc::new(Product));
    let output = match bias {
        Some(bias) => Dispatch::lean_rule_3(rows, weight, bias.into_dispatch(), rule),
        None => Dispatch::lean_rule_2(rows, weight, rule),
    };
    shape[D - 1] = width_out;
    Tensor::<2>::from_dispatch(output).reshape(shape)
}

/// `x weight + bias`, in the dtype of `x`.
#[derive(Debug)]
struct Product;

impl Rule for Product {
    fn keeps(&self) -> &'static [bool] {
        &[true, true, false]
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let mut inputs = inputs.into_iter();
        let mut next = || inputs.next().expect("x and weight");
        let x = Tensor::<2>::from_dispatch(next());
        let weight = Tensor::<2>::from_dispatch(next());
        let dtype = FloatDType::from(x.dtype());
        let mut output = x.matmul(weight.cast(dtype));
        let mut kept = Vec::new();
        if let Some(bias) = inputs.next() {
            let bias = Tensor::<1>::from_dispatch(bias);
            let stored = bias.dtype();
            output = output + bias.clone().cast(dtype).unsqueeze();
            // An empty tensor says which dtype the bias is stored in.
            kept.push(Tensor::<1>::empty([0], (&bias.device(), stored)).into_dispatch());
        }
        (output.into_dispatch(), kept)
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        wanted: &[bool],
    ) -> InputGradients {
        let mut inputs = inputs.into_iter();
        let mut next = || Tensor::<2>::from_dispatch(inputs.next().expect("x and weight"));
        let (x, weight) = (next(), next());
        let gradient = Tensor::<2>::from_dispatch(gradient);
        let bias_grad = kept.into_iter().next().map(|stored| {
            let stored = Tensor::<1>::from_dispatch(stored).dtype();
            let sum = gradient.clone().cast(FloatDType::F32).sum_dim(0);
            sum.squeeze_dim::<1>(0)
                .cast(FloatDType::from(stored))
                .into_dispatch()
        });
        let stored = FloatDType::from(weight.dtype());
        let dtype = FloatDType::from(x.dtype());
        let weight_grad = wanted[1].then(|| x.transpose().matmul(gradient.clone()).cast(stored));
        let x_grad = wanted[0].then(|| gradient.matmul(weight.cast(dtype).transpose()));
        vec![
            x_grad.map(Tensor::into_dispatch),
            weight_grad.map(Tensor::into_dispatch),
            bias_grad,
        ]
    }
}
