//! Rotary positions that keep nothing.

use std::sync::Arc;

use burn::backend::{Dispatch, DispatchTensor};
use burn::tensor::{Device, FloatDType, Int, Tensor};

use super::{InputGradients, LeanOps, Made, Rule};

/// Angles of consecutive positions (Su et al. 2021, <https://arxiv.org/abs/2104.09864>), halves of a head
/// paired as in Llama's published weights.
#[derive(Clone, Debug)]
pub struct Rotary {
    cosines: Tensor<4>,
    sines: Tensor<4>,
}

impl Rotary {
    /// Tables for positions `0..positions` and heads of `width`, in f32.
    ///
    /// # Panics
    ///
    /// Where the width is odd.
    pub fn new(positions: usize, width: usize, theta: f64, device: &Device) -> Self {
        assert!(
            width.is_multiple_of(2),
            "rotary positions need an even width, not {width}"
        );
        let device = &device.clone().inner();
        let half = width / 2;
        let at = |end: usize| {
            Tensor::<1, Int>::arange(0..end as i64, device)
                .float()
                .cast(FloatDType::F32)
        };
        let rates = at(half).mul_scalar(-theta.ln() * 2.0 / width as f64).exp();
        let angles = at(positions).reshape([1, 1, positions, 1]) * rates.reshape([1, 1, 1, half]);
        Self {
            cosines: angles.clone().cos(),
            sines: angles.sin(),
        }
    }

    /// Rotates `x` `[batch, heads, tokens, width]`, whose first token stands at position `start`.
    ///
    /// # Panics
    ///
    /// Where the tables end before the last token.
    pub fn rotate(&self, x: Tensor<4>, start: usize) -> Tensor<4> {
        let [_, _, tokens, _] = x.dims();
        let [_, _, positions, half] = self.cosines.dims();
        assert!(
            start + tokens <= positions,
            "{positions} positions, token {}",
            start + tokens
        );
        let part = |table: &Tensor<4>| {
            table
                .clone()
                .slice([0..1, 0..1, start..start + tokens, 0..half])
        };
        let rule = Rotation {
            cosines: part(&self.cosines),
            sines: part(&self.sines),
        };
        Tensor::from_dispatch(Dispatch::lean_rule_1(x.into_dispatch(), Arc::new(rule)))
    }
}

#[derive(Debug)]
struct Rotation {
    cosines: Tensor<4>,
    sines: Tensor<4>,
}

impl Rotation {
    fn turn(&self, x: DispatchTensor, direction: f64) -> DispatchTensor {
        let x = Tensor::<4>::from_dispatch(x);
        let dtype = FloatDType::from(x.dtype());
        let [left, right] = halves(x.cast(FloatDType::F32));
        let sines = self.sines.clone().mul_scalar(direction);
        let turned = vec![
            left.clone() * self.cosines.clone() - right.clone() * sines.clone(),
            right * self.cosines.clone() + left * sines,
        ];
        Tensor::cat(turned, 3).cast(dtype).into_dispatch()
    }
}

fn halves(x: Tensor<4>) -> [Tensor<4>; 2] {
    let [batch, heads, tokens, width] = x.dims();
    [0, width / 2].map(|start| {
        x.clone()
            .slice([0..batch, 0..heads, 0..tokens, start..start + width / 2])
    })
}

impl Rule for Rotation {
    fn keeps(&self) -> &'static [bool] {
        &[false]
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let [x] = <[_; 1]>::try_from(inputs).expect("one input");
        (self.turn(x, 1.0), Vec::new())
    }

    fn backward(
        &self,
        _inputs: Vec<DispatchTensor>,
        _kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        _wanted: &[bool],
    ) -> InputGradients {
        vec![Some(self.turn(gradient, -1.0))]
    }
}
