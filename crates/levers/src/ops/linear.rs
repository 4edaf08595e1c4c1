//! Linear layer that keeps its input, and the weight only as it is stored.

use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::nn::Linear;
use burn::tensor::{FloatDType, Tensor};

use super::{InputGradients, LeanOps, Made, Rule};
use crate::int8::{self, Int8, Watched};
use crate::precision::CastTo;

/// Applies a Burn [`Linear`] to `x` `[..., in]`.
///
/// With a [`Policy`](crate::Policy) attached to the layer, `x` is cast to the compute dtype and the
/// f32 weight is cast inside the operation, so that no half-precision copy of it is kept. Layers with [`Int8`]
/// weights compute as [`int8`] says.
pub fn linear<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    let mut shape = x.dims();
    let rows = x.reshape([-1, shape[D - 1] as i64]);
    let y = by_rows(layer, rows);
    shape[D - 1] = y.dims()[1];
    y.reshape(shape)
}

fn by_rows(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    if let Some(int8) = layer.weight.reparameterization::<Int8>() {
        return int8::linear(layer, int8, x);
    }
    let Some(watched) = layer.weight.reparameterization::<Watched>() else {
        return in_floats(layer, x);
    };
    let y = in_floats(layer, x.clone());
    watched.watch().linear(layer, &x, &y);
    y
}

fn in_floats(layer: &Linear, x: Tensor<2>) -> Tensor<2> {
    let bias = layer.bias.as_ref();
    match layer.weight.reparameterization::<CastTo>() {
        Some(cast) => {
            let bias = bias.map(|bias| bias.base());
            apply(cast.input(x), layer.weight.base(), bias)
        }
        None => apply(x, layer.weight.val(), bias.map(|bias| bias.val())),
    }
}

fn apply(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let (x, weight, rule) = (x.into_dispatch(), weight.into_dispatch(), Arc::new(Product));
    Tensor::from_dispatch(match bias {
        Some(bias) => Dispatch::lean_rule_3(x, weight, bias.into_dispatch(), rule),
        None => Dispatch::lean_rule_2(x, weight, rule),
    })
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
