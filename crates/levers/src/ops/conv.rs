//! Convolution that keeps its input, and the weight only as it is stored.

use burn::backend::ops::ConvOptions;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch};
use burn::nn::PaddingConfig2d;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;
use burn_autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn_autodiff::grads::Gradients;
use burn_autodiff::ops::{Backward, Ops, OpsKind};
use burn_autodiff::{Autodiff, NodeId};

use super::{Kernels, LeanOps};
use crate::int8::{self, Int8, Watched};
use crate::precision::CastTo;

/// Applies a Burn [`Conv2d`] to `x` `[batch, in, height, width]`.
///
/// With a [`Policy`](crate::Policy) attached to the layer, `x` is cast to the compute dtype and the
/// f32 weight is cast inside the operation, so that no half-precision copy of it is kept.
/// Layers with a bias or with `Same` padding go through Burn's own operation, layers with [`Int8`] weights
/// compute as [`int8`] says.
pub fn conv2d(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    if let Some(int8) = conv.weight.reparameterization::<Int8>() {
        return int8::conv2d(conv, int8, x);
    }
    let Some(watched) = conv.weight.reparameterization::<Watched>() else {
        return in_floats(conv, x);
    };
    let y = in_floats(conv, x.clone());
    watched.watch().conv2d(conv, &x, &y);
    y
}

fn in_floats(conv: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let cast = conv.weight.reparameterization::<CastTo>();
    let x = match cast {
        Some(cast) => cast.input(x),
        None => x,
    };
    let Some(options) = lean_options(conv) else {
        return conv.forward(x);
    };
    let weight = match cast {
        Some(_) => conv.weight.base(),
        None => conv.weight.val(),
    };
    Tensor::from_dispatch(Dispatch::lean_conv2d(
        x.into_dispatch(),
        weight.into_dispatch(),
        options,
    ))
}

fn lean_options(conv: &Conv2d) -> Option<ConvOptions<2>> {
    let padding = match conv.padding {
        PaddingConfig2d::Valid => [0, 0],
        PaddingConfig2d::Explicit(top, left, bottom, right) if top == bottom && left == right => {
            [top, left]
        }
        _ => return None,
    };
    conv.bias
        .is_none()
        .then(|| ConvOptions::new(conv.stride, padding, conv.dilation, conv.groups))
}

#[derive(Debug)]
struct Conv2dBackward;

#[derive(Clone, Debug)]
struct Saved<B: Backend> {
    /// Kept by the graph, or recomputed if the operation behind it says so.
    x: NodeId,
    weight: FloatTensor<B>,
    options: ConvOptions<2>,
}

impl<B: Kernels> Backward<B, 2> for Conv2dBackward {
    type State = Saved<B>;

    fn backward(
        self,
        ops: Ops<Saved<B>, 2>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let grad = grads.consume::<B>(&ops.node);
        let [x_node, weight_node] = ops.parents;
        let Saved { x, weight, options } = ops.state;
        let x = checkpointer.retrieve_node_output::<FloatTensor<B>>(x);
        if let Some(node) = weight_node {
            let weight_grad =
                B::conv2d_weight_grad(x.clone(), weight.clone(), grad.clone(), options.clone());
            grads.register::<B>(node.id, weight_grad);
        }
        if let Some(node) = x_node {
            grads.register::<B>(node.id, B::conv2d_input_grad(x, weight, grad, options));
        }
    }
}

pub(super) fn differentiable<B: Kernels, C: CheckpointStrategy>(
    x: FloatTensor<Autodiff<B, C>>,
    weight: FloatTensor<Autodiff<B, C>>,
    options: ConvOptions<2>,
) -> FloatTensor<Autodiff<B, C>> {
    let output = B::conv2d_forward(
        x.primitive().clone(),
        weight.primitive().clone(),
        options.clone(),
    );
    let prepared = Conv2dBackward
        .prepare::<C>([x.node(), weight.node()])
        .compute_bound()
        .stateful();
    match prepared {
        OpsKind::Tracked(mut prep) => {
            let saved = Saved {
                x: prep.checkpoint(&x),
                weight: weight.into_primitive(),
                options,
            };
            prep.finish(saved, output)
        }
        OpsKind::UnTracked(prep) => prep.finish(output),
    }
}
