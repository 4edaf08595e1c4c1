//! Layer norms that keep their input, and two numbers a row.

use std::sync::Arc;

#[cfg(feature = "flex")]
use burn::backend::Flex;
use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{FloatDType, Tensor};
use leanburn_memory::trace::Kernel;

#[cfg(feature = "flex")]
use super::flex::{by_dtype, layer_norm as kernel};
use super::{InputGradients, LeanOps, Made, Pass, Rule};
#[cfg(feature = "flex")]
use super::{dispatch, primitive};

/// `(x - mean) / sqrt(variance + epsilon) * gamma + beta` over the last dimension of `x` `[..., width]`.
///
/// Input and output are in `x`'s dtype; statistics, parameters and the arithmetic between are f32. Ba et
/// al. 2016, <https://arxiv.org/abs/1607.06450>.
pub fn layer_norm<const D: usize>(
    x: Tensor<D>,
    gamma: Tensor<1>,
    beta: Tensor<1>,
    epsilon: f64,
) -> Tensor<D> {
    let shape = x.dims();
    let rule = Arc::new(Rows {
        centred: true,
        epsilon,
    });
    let output = Dispatch::lean_rule_3(
        rows(x).into_dispatch(),
        gamma.into_dispatch(),
        beta.into_dispatch(),
        rule,
    );
    Tensor::<2>::from_dispatch(output).reshape(shape)
}

/// `x / sqrt(mean(x²) + epsilon) * gamma` over the last dimension of `x` `[..., width]`, likewise. Zhang
/// and Sennrich 2019, <https://arxiv.org/abs/1910.07467>.
pub fn rms_norm<const D: usize>(x: Tensor<D>, gamma: Tensor<1>, epsilon: f64) -> Tensor<D> {
    let shape = x.dims();
    let rule = Arc::new(Rows {
        centred: false,
        epsilon,
    });
    let output = Dispatch::lean_rule_2(rows(x).into_dispatch(), gamma.into_dispatch(), rule);
    Tensor::<2>::from_dispatch(output).reshape(shape)
}

pub(super) fn rows<const D: usize>(x: Tensor<D>) -> Tensor<2> {
    let width = x.dims()[D - 1];
    x.reshape([-1, width as i64])
}

#[derive(Debug)]
struct Rows {
    /// Take the mean off first.
    centred: bool,
    epsilon: f64,
}

impl Rows {
    /// Rows of mean 0 and variance 1 from their mean and the inverse of their deviation, `[rows, 1]` each.
    fn normed(&self, x: Tensor<2>, mean: Option<Tensor<2>>, inverse: Tensor<2>) -> Tensor<2> {
        let x = x.cast(FloatDType::F32);
        match mean {
            Some(mean) => (x - mean) * inverse,
            None => x * inverse,
        }
    }

    /// The CPU's own kernel.
    #[cfg(feature = "flex")]
    fn on_flex(&self, inputs: &[DispatchTensor]) -> Option<Made> {
        let mut inputs = inputs.iter().cloned().map(primitive::<Flex>);
        let (x, gamma) = (inputs.next()??, inputs.next()??);
        let beta = inputs.next().flatten();
        let (dtype, epsilon) = (x.dtype(), self.epsilon as f32);
        let (output, inverse, mean) = by_dtype!(dtype, E => {
            kernel::forward::<E>(x, &gamma, beta.as_ref(), epsilon, self.centred)
        });
        let kept = std::iter::once(inverse).chain(mean).map(dispatch::<Flex>);
        Some((dispatch::<Flex>(output), kept.collect()))
    }

    #[cfg(feature = "flex")]
    fn backward_on_flex(
        &self,
        inputs: &[DispatchTensor],
        kept: &[DispatchTensor],
        gradient: &DispatchTensor,
    ) -> Option<InputGradients> {
        let mut inputs = inputs.iter().cloned().map(primitive::<Flex>);
        let (x, gamma) = (inputs.next()??, inputs.next()??);
        let mut kept = kept.iter().cloned().filter_map(primitive::<Flex>);
        let (inverse, mean) = (kept.next()?, kept.next());
        let gradient = primitive::<Flex>(gradient.clone())?;
        let gradients = by_dtype!(x.dtype(), E => {
            kernel::backward::<E>([x, gradient], &gamma, &inverse, mean.as_ref())
        });
        Some(gradients.map(|grad| Some(dispatch::<Flex>(grad))).into())
    }
}

#[cfg(feature = "flex")]
fn workspace(shape: [usize; 2]) -> u64 {
    kernel::workspace(shape)
}

#[cfg(not(feature = "flex"))]
fn workspace(_shape: [usize; 2]) -> u64 {
    0
}

impl Rule for Rows {
    fn keeps(&self) -> &'static [bool] {
        &[true, true, false]
    }

    fn kernel(&self, inputs: &[DispatchTensor], pass: Pass) -> Option<Kernel> {
        let x = Tensor::<2>::from_dispatch(inputs[0].clone());
        let workspace = match pass {
            Pass::Forward => 0,
            Pass::Backward => workspace(x.dims()),
        };
        Some(Kernel {
            workspace,
            ..Kernel::new("layer norm")
        })
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        #[cfg(feature = "flex")]
        if let Some(result) = self.on_flex(&inputs) {
            return result;
        }
        let mut inputs = inputs.into_iter();
        let x = Tensor::<2>::from_dispatch(inputs.next().expect("x"));
        let mut vector = || inputs.next().map(Tensor::<1>::from_dispatch);
        let (gamma, beta) = (vector().expect("gamma"), vector());
        let dtype = FloatDType::from(x.dtype());
        let wide = x.cast(FloatDType::F32);
        let mean = self.centred.then(|| wide.clone().mean_dim(1));
        let centred = match &mean {
            Some(mean) => wide - mean.clone(),
            None => wide,
        };
        let variance = centred.clone().square().mean_dim(1);
        let inverse = variance.add_scalar(self.epsilon).sqrt().recip();
        let mut output = centred * inverse.clone() * gamma.unsqueeze();
        if let Some(beta) = beta {
            output = output + beta.unsqueeze();
        }
        let mut kept = vec![inverse.into_dispatch()];
        kept.extend(mean.map(Tensor::into_dispatch));
        (output.cast(dtype).into_dispatch(), kept)
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        wanted: &[bool],
    ) -> InputGradients {
        #[cfg(feature = "flex")]
        if let Some(gradients) = self.backward_on_flex(&inputs, &kept, &gradient) {
            return gradients;
        }
        let mut inputs = inputs.into_iter();
        let x = Tensor::<2>::from_dispatch(inputs.next().expect("x"));
        let gamma = Tensor::<1>::from_dispatch(inputs.next().expect("gamma"));
        let mut kept = kept.into_iter().map(Tensor::<2>::from_dispatch);
        let inverse = kept.next().expect("the inverse deviation");
        let dtype = FloatDType::from(x.dtype());
        let normed = self.normed(x, kept.next(), inverse.clone());
        let gradient = Tensor::<2>::from_dispatch(gradient).cast(FloatDType::F32);
        let beta_grad = (wanted.get(2) == Some(&true)).then(|| {
            gradient
                .clone()
                .sum_dim(0)
                .squeeze_dim::<1>(0)
                .into_dispatch()
        });
        let gamma_grad = wanted[1].then(|| {
            let sum = (gradient.clone() * normed.clone()).sum_dim(0);
            sum.squeeze_dim::<1>(0).into_dispatch()
        });
        let x_grad = wanted[0].then(|| {
            let gradient = gradient * gamma.unsqueeze();
            let along = (gradient.clone() * normed.clone()).mean_dim(1);
            let rest = match self.centred {
                true => gradient.clone() - gradient.mean_dim(1),
                false => gradient,
            };
            ((rest - normed * along) * inverse)
                .cast(dtype)
                .into_dispatch()
        });
        vec![x_grad, gamma_grad, beta_grad]
    }
}
