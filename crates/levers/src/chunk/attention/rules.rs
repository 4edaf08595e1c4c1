//! Attention as operations of the graph: on three tensors, or on one that holds all three.

use burn::backend::DispatchTensor;
use burn::tensor::Tensor;
use leanburn_memory::trace::Kernel;

use super::Computation;
use crate::ops::{InputGradients, Made, Pass, Rule};

/// Query, key and value apart.
#[derive(Debug)]
pub(super) struct Separate(pub Computation);

impl Rule for Separate {
    fn keeps(&self) -> &'static [bool] {
        &[true; 3]
    }

    fn kernel(&self, inputs: &[DispatchTensor], pass: Pass) -> Option<Kernel> {
        let [q, k, _] = three(inputs.to_vec());
        Some(self.0.kernel([q.dims(), k.dims()], pass))
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let (output, logarithms) = self.0.forward(three(inputs));
        let output = output.swap_dims(1, 2).into_dispatch();
        (output.clone(), vec![output, logarithms.into_dispatch()])
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        _wanted: &[bool],
    ) -> InputGradients {
        let inputs = three(inputs);
        let [output, logarithms] = two(kept);
        let gradient = Tensor::from_dispatch(gradient);
        let gradients = self.0.backward(inputs, output, logarithms, gradient, false);
        gradients.into_iter().map(Some).collect()
    }
}

/// Queries, keys and values in one tensor.
#[derive(Debug)]
pub(super) struct Packed {
    pub pass: Computation,
    pub heads: usize,
}

impl Packed {
    fn split(&self, qkv: Tensor<3>) -> [Tensor<4>; 3] {
        let [batch, tokens, width] = qkv.dims();
        let each = width / 3 / self.heads;
        let qkv = qkv.reshape([batch, tokens, 3, self.heads, each]);
        [0, 1, 2].map(|index| {
            let part = [
                0..batch,
                0..tokens,
                index..index + 1,
                0..self.heads,
                0..each,
            ];
            qkv.clone().slice(part).squeeze_dim::<4>(2).swap_dims(1, 2)
        })
    }
}

impl Rule for Packed {
    fn keeps(&self) -> &'static [bool] {
        &[true]
    }

    fn kernel(&self, inputs: &[DispatchTensor], pass: Pass) -> Option<Kernel> {
        let [batch, tokens, width] = Tensor::<3>::from_dispatch(inputs[0].clone()).dims();
        let shape = [batch, self.heads, tokens, width / 3 / self.heads];
        Some(self.pass.kernel([shape; 2], pass))
    }

    fn forward(&self, inputs: Vec<DispatchTensor>, _wanted: &[bool]) -> Made {
        let [qkv] = <[_; 1]>::try_from(inputs).expect("one input");
        let (output, logarithms) = self.pass.forward(self.split(Tensor::from_dispatch(qkv)));
        let output: Tensor<3> = output.flatten(2, 3);
        let output = output.into_dispatch();
        (output.clone(), vec![output, logarithms.into_dispatch()])
    }

    fn backward(
        &self,
        inputs: Vec<DispatchTensor>,
        kept: Vec<DispatchTensor>,
        gradient: DispatchTensor,
        _wanted: &[bool],
    ) -> InputGradients {
        let qkv = inputs.into_iter().next().expect("kept");
        let qkv = Tensor::<3>::from_dispatch(qkv);
        let [batch, tokens, width] = qkv.dims();
        let heads = |x: DispatchTensor| {
            let x = Tensor::<3>::from_dispatch(x);
            let shape = [batch, tokens, self.heads, width / 3 / self.heads];
            x.reshape(shape).swap_dims(1, 2)
        };
        let [output, logarithms] = <[_; 2]>::try_from(kept).expect("two kept");
        let logarithms = Tensor::from_dispatch(logarithms);
        let (output, gradient) = (heads(output), heads(gradient));
        let gradients = self
            .pass
            .backward(self.split(qkv), output, logarithms, gradient, true);
        gradients.into_iter().map(Some).collect()
    }
}

fn three(tensors: Vec<DispatchTensor>) -> [Tensor<4>; 3] {
    let tensors: [_; 3] = tensors.try_into().expect("query, key and value");
    tensors.map(Tensor::from_dispatch)
}

fn two(tensors: Vec<DispatchTensor>) -> [Tensor<4>; 2] {
    let tensors: [_; 2] = tensors.try_into().expect("output and logarithms");
    tensors.map(Tensor::from_dispatch)
}
