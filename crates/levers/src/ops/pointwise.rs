//! Activations of Transformers that keep their inputs only.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};
use std::sync::Arc;

#[cfg(feature = "flex")]
use burn::backend::Flex;
use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{FloatDType, Tensor, activation::sigmoid};
use leanburn_memory::trace::Kernel;

#[cfg(feature = "flex")]
use super::flex::{self, exp::sigmoid as sigma};
use super::layer_norm::rows;
use super::{InputGradients, LeanOps, Made, Pass, Rule};
#[cfg(feature = "flex")]
use super::{dispatch, primitive};

/// Which GELU (Hendrycks and Gimpel 2016, <https://arxiv.org/abs/1606.08415>).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gelu {
    /// `x Φ(x)`, as BERT.
    Exact,
    /// The approximation by tanh, as GPT-2.
    Tanh,
}

/// GELU of `x`, in its dtype; f32 between.
pub fn gelu<const D: usize>(x: Tensor<D>, gelu: Gelu) -> Tensor<D> {
    let shape = x.dims();
    let output = Dispatch::lean_rule_1(rows(x).into_dispatch(), Arc::new(gelu));
    Tensor::<2>::from_dispatch(output).reshape(shape)
}

/// `silu(gate) * up`, the middle of a SwiGLU (Shazeer 2020, <https://arxiv.org/abs/2002.05202>).
pub fn swiglu<const D: usize>(gate: Tensor<D>, up: Tensor<D>) -> Tensor<D> {
    let shape = gate.dims();
    let [gate, up] = [gate, up].map(|x| rows(x).into_dispatch());
    let output = Dispatch::lean_rule_2(gate, up, Arc::new(SwiGlu));
    Tensor::<2>::from_dispatch(output).reshape(shape)
}

/// sqrt(2 / π)
const SLOPE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;
/// Factor of the cube in the approximation.
const CUBE: f64 = 0.044715;

/// The approximation of `Φ(x)` by tanh.
#[cfg(feature = "flex")]
#[inline(always)]
fn tanh_gate(x: f32) -> f32 {
    sigma((2.0 * SLOPE) as f32 * (x + CUBE as f32 * x * x * x))
}

impl Gelu {
    fn value(self, x: Tensor<2>) -> Tensor<2> {
        self.gate(x.clone()) * x
    }

    /// What multiplies `x`: `Φ(x)` or its approximation.
    fn gate(self, x: Tensor<2>) -> Tensor<2> {
        match self {
            Self::Exact => x
                .mul_scalar(FRAC_1_SQRT_2)
                .erf()
                .add_scalar(1.0)
                .mul_scalar(0.5),
            // (1 + tanh(u)) / 2 = sigmoid(2 u)
            Self::Tanh => {
                let square = x.clone().square().mul_scalar(2.0 * SLOPE * CUBE);
                sigmoid(square.add_scalar(2.0 * SLOPE) * x)
            }
        }
    }

    fn derivative(self, x: Tensor<2>) -> Tensor<2> {
        let gate = self.gate(x.clone());
        let slope = match self {
            Self::Exact => x
                .clone()
                .square()
                .mul_scalar(-0.5)
                .exp()
                .mul_scalar(SLOPE / 2.0),
            Self::Tanh => {
                let inner = x
                    .clone()
                    .square()
                    .mul_scalar(6.0 * SLOPE * CUBE)
                    .add_scalar(2.0 * SLOPE);
                (gate.clone() - gate.clone().square()) * inner
            }
        };
        gate + slope * x
    }
}

impl Rule for Gelu {
    fn keeps(&self) -> &'static [bool] {
        &[true]
    }

    fn kernel(&self, _inputs: &[DispatchTensor], _pass: Pass) -> Option<Kernel> {
        (*self == Self::Tanh).then_some(Kernel::new("gelu"))
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let [x] = <[_; 1]>::try_from(inputs).expect("one input");
        #[cfg(feature = "flex")]
        if let (Self::Tanh, Some(x)) = (self, primitive::<Flex>(x.clone())) {
            let [y] = flex::pointwise::map([x], |[x]| [x * tanh_gate(x)]);
            return (dispatch::<Flex>(y), Vec::new());
        }
        let x = Tensor::<2>::from_dispatch(x);
        let dtype = FloatDType::from(x.dtype());
        let y = self.value(x.cast(FloatDType::F32)).cast(dtype);
        (y.into_dispatch(), Vec::new())
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        _kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        _wanted: &[bool],
    ) -> InputGradients {
        let x = inputs.into_iter().next().expect("kept");
        #[cfg(feature = "flex")]
        if let (Self::Tanh, [Some(x), Some(gradient)]) =
            (self, [&x, &gradient].map(|x| primitive::<Flex>(x.clone())))
        {
            let [grad] = flex::pointwise::map([x, gradient], |[x, gradient]| {
                let gate = tanh_gate(x);
                let inner = (2.0 * SLOPE) as f32 * (1.0 + (3.0 * CUBE) as f32 * x * x);
                [gradient * (gate + (gate - gate * gate) * inner * x)]
            });
            return vec![Some(dispatch::<Flex>(grad))];
        }
        let [x, gradient] = [x, gradient].map(Tensor::<2>::from_dispatch);
        let dtype = FloatDType::from(x.dtype());
        let gradient = gradient.cast(FloatDType::F32) * self.derivative(x.cast(FloatDType::F32));
        vec![Some(gradient.cast(dtype).into_dispatch())]
    }
}

#[derive(Debug)]
struct SwiGlu;

impl Rule for SwiGlu {
    fn keeps(&self) -> &'static [bool] {
        &[true; 2]
    }

    fn kernel(&self, _inputs: &[DispatchTensor], _pass: Pass) -> Option<Kernel> {
        Some(Kernel::new("swiglu"))
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let inputs = <[_; 2]>::try_from(inputs).expect("gate and up");
        #[cfg(feature = "flex")]
        if let [Some(gate), Some(up)] = inputs.clone().map(primitive::<Flex>) {
            let [y] = flex::pointwise::map([gate, up], |[gate, up]| [gate * sigma(gate) * up]);
            return (dispatch::<Flex>(y), Vec::new());
        }
        let [gate, up] = inputs.map(Tensor::<2>::from_dispatch);
        let dtype = FloatDType::from(gate.dtype());
        let [gate, up] = [gate, up].map(|x| x.cast(FloatDType::F32));
        let y = sigmoid(gate.clone()) * gate * up;
        (y.cast(dtype).into_dispatch(), Vec::new())
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        _kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        _wanted: &[bool],
    ) -> InputGradients {
        let inputs = <[_; 2]>::try_from(inputs).expect("gate and up");
        #[cfg(feature = "flex")]
        if let [Some(gate), Some(up), Some(gradient)] =
            [&inputs[0], &inputs[1], &gradient].map(|x| primitive::<Flex>(x.clone()))
        {
            let grads = flex::pointwise::map([gate, up, gradient], |[gate, up, gradient]| {
                let sigma = sigma(gate);
                let silu = sigma * gate;
                [
                    gradient * up * (sigma + silu - silu * sigma),
                    gradient * silu,
                ]
            });
            return grads.map(|grad| Some(dispatch::<Flex>(grad))).into();
        }
        let [gate, up] = inputs.map(Tensor::<2>::from_dispatch);
        let dtypes = [&gate, &up].map(|x| FloatDType::from(x.dtype()));
        let gradient = Tensor::<2>::from_dispatch(gradient).cast(FloatDType::F32);
        let [gate, up] = [gate, up].map(|x| x.cast(FloatDType::F32));
        let sigma = sigmoid(gate.clone());
        let silu = sigma.clone() * gate;
        let up_grad = gradient.clone() * silu.clone();
        // silu' = sigma + silu (1 - sigma)
        let slope = sigma.clone() + silu.clone() - silu * sigma;
        let gate_grad = gradient * up * slope;
        let gradients = [gate_grad, up_grad].into_iter().zip(dtypes);
        gradients
            .map(|(grad, dtype)| Some(grad.cast(dtype).into_dispatch()))
            .collect()
    }
}
