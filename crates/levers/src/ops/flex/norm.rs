//! BatchNorm with its activation: two reads of the input forward, two backward, nothing else kept.

use burn::backend::{Flex, TensorMetadata};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::super::kernels::{Activation, NormActGrads, NormActSaved};
use super::element::{Element, contiguous, tensor};

/// Values widened at a time; small enough for the stack and the first-level cache.
const BLOCK: usize = 256;

/// Sizes of `[batch, channels, positions]`.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    channels: usize,
    positions: usize,
}

impl Sizes {
    fn of(tensor: &FlexTensor) -> Self {
        let shape = tensor.shape();
        let (batch, channels) = (shape[0], shape[1]);
        let positions = shape.num_elements() / (batch * channels).max(1);
        Self {
            batch,
            channels,
            positions,
        }
    }

    fn image(&self) -> usize {
        self.channels * self.positions
    }

    fn per_channel(&self) -> f64 {
        (self.batch * self.positions) as f64
    }

    /// Where a channel's values lie in each image.
    fn rows(self, channel: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        (0..self.batch).map(move |image| {
            let start = (image * self.channels + channel) * self.positions;
            start..start + self.positions
        })
    }
}

/// The affine map of one channel: `normalised = (x - mean) * inv_std`, `pre = normalised * gamma + beta`.
#[derive(Clone, Copy)]
struct Channel {
    mean: f32,
    inv_std: f32,
    gamma: f32,
    beta: f32,
}

impl Channel {
    fn pre_activation(&self, x: f32) -> f32 {
        (x - self.mean) * self.inv_std * self.gamma + self.beta
    }
}

fn channels(
    gamma: &[f32],
    beta: &[f32],
    mean: &[f32],
    variance: &[f32],
    epsilon: f64,
) -> Vec<Channel> {
    let inv_std = |v: f32| (1.0 / (f64::from(v) + epsilon).sqrt()) as f32;
    (0..gamma.len())
        .map(|c| Channel {
            mean: mean[c],
            inv_std: inv_std(variance[c]),
            gamma: gamma[c],
            beta: beta[c],
        })
        .collect()
}

/// Calls `f` with blocks of `values` in f32.
fn blocks<E: Element>(values: &[E], mut f: impl FnMut(&[f32])) {
    let mut buffer = [0.0; BLOCK];
    for block in values.chunks(BLOCK) {
        let widened = &mut buffer[..block.len()];
        E::widen(block, widened);
        f(widened);
    }
}

fn statistics<E: Element>(x: &[E], sizes: Sizes, channel: usize) -> (f32, f32) {
    let mut sum = 0.0f64;
    for row in sizes.rows(channel) {
        blocks(&x[row], |values| {
            sum += f64::from(values.iter().sum::<f32>())
        });
    }
    let mean = (sum / sizes.per_channel()) as f32;
    let mut squares = 0.0f64;
    for row in sizes.rows(channel) {
        blocks(&x[row], |values| {
            squares += f64::from(values.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>());
        });
    }
    (mean, (squares / sizes.per_channel()) as f32)
}

pub fn forward<E: Element>(
    x: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
    residual: Option<FlexTensor>,
    epsilon: f64,
    activation: Activation,
) -> (FlexTensor, FlexTensor, FlexTensor) {
    let (shape, sizes) = (x.shape(), Sizes::of(&x));
    let x = contiguous(x);
    let residual = residual.map(contiguous);
    let values: &[E] = x.storage();
    let residual: Option<&[E]> = residual.as_ref().map(FlexTensor::storage);

    let (mean, variance): (Vec<f32>, Vec<f32>) = (0..sizes.channels)
        .into_par_iter()
        .map(|channel| statistics(values, sizes, channel))
        .unzip();
    let (gamma, beta) = (contiguous(gamma), contiguous(beta));
    let channels = channels(gamma.storage(), beta.storage(), &mean, &variance, epsilon);

    let mut output = vec![E::zeroed(); values.len()];
    output
        .par_chunks_mut(sizes.image().max(1))
        .enumerate()
        .for_each(|(image, output)| {
            let start = image * sizes.image();
            for (row, target) in output.chunks_mut(sizes.positions).enumerate() {
                let range = start + row * sizes.positions..start + (row + 1) * sizes.positions;
                let residual = residual.map(|residual| &residual[range.clone()]);
                forward_row(channels[row], activation, &values[range], residual, target);
            }
        });
    let [mean, variance] = [mean, variance].map(|values| tensor(values, [sizes.channels]));
    (tensor(output, shape), mean, variance)
}

fn forward_row<E: Element>(
    channel: Channel,
    activation: Activation,
    x: &[E],
    residual: Option<&[E]>,
    target: &mut [E],
) {
    let (mut values, mut added) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (index, target) in target.chunks_mut(BLOCK).enumerate() {
        let range = index * BLOCK..index * BLOCK + target.len();
        let values = &mut values[..target.len()];
        E::widen(&x[range.clone()], values);
        for value in values.iter_mut() {
            *value = channel.pre_activation(*value);
        }
        if let Some(residual) = residual {
            let added = &mut added[..target.len()];
            E::widen(&residual[range], added);
            for (value, added) in values.iter_mut().zip(added) {
                *value += *added;
            }
        }
        if activation == Activation::Relu {
            for value in values.iter_mut() {
                // NaN stays NaN, as in PyTorch.
                *value = if *value <= 0.0 { 0.0 } else { *value };
            }
        }
        E::narrow(values, target);
    }
}

/// The gradient at the pre-activation, in blocks: calls `f(x, masked gradient)`.
fn masked_blocks<E: Element>(
    channel: Channel,
    relu: bool,
    x: &[E],
    grad: &[E],
    mut f: impl FnMut(usize, &[f32], &[f32]),
) {
    let (mut values, mut grads) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (index, (x, grad)) in x.chunks(BLOCK).zip(grad.chunks(BLOCK)).enumerate() {
        let (values, grads) = (&mut values[..x.len()], &mut grads[..x.len()]);
        E::widen(x, values);
        E::widen(grad, grads);
        if relu {
            for (value, grad) in values.iter().zip(grads.iter_mut()) {
                *grad = if channel.pre_activation(*value) <= 0.0 {
                    0.0
                } else {
                    *grad
                };
            }
        }
        f(index * BLOCK, values, grads);
    }
}

/// Gradients of gamma and beta for one channel.
fn parameter_grads<E: Element>(
    channel: Channel,
    relu: bool,
    (x, grad): (&[E], &[E]),
    rows: impl Iterator<Item = std::ops::Range<usize>>,
) -> (f32, f32) {
    let (mut for_gamma, mut for_beta) = (0.0f64, 0.0f64);
    for row in rows {
        masked_blocks(
            channel,
            relu,
            &x[row.clone()],
            &grad[row],
            |_, values, grads| {
                let products = values
                    .iter()
                    .zip(grads)
                    .map(|(x, g)| (x - channel.mean) * g);
                for_gamma += f64::from(products.sum::<f32>());
                for_beta += f64::from(grads.iter().sum::<f32>());
            },
        );
    }
    (
        (for_gamma * f64::from(channel.inv_std)) as f32,
        for_beta as f32,
    )
}

pub fn backward<E: Element>(
    saved: NormActSaved<Flex>,
    grad: FlexTensor,
    wants_residual: bool,
) -> NormActGrads<Flex> {
    let (shape, sizes) = (saved.x.shape(), Sizes::of(&saved.x));
    let mut grad = contiguous(grad);
    let mut relu = saved.activation == Activation::Relu;
    if let (Some(output), true) = (saved.output, relu) {
        mask_by_output::<E>(&mut grad, output);
        relu = false;
    }
    // The residual takes the masked gradient itself, not a copy of it.
    let residual = wants_residual.then(|| grad.clone());

    let x = contiguous(saved.x);
    let [gamma, beta, mean, variance] =
        [saved.gamma, saved.beta, saved.mean, saved.variance].map(contiguous);
    let channels = channels(
        gamma.storage(),
        beta.storage(),
        mean.storage(),
        variance.storage(),
        saved.epsilon,
    );
    let x: &[E] = x.storage();
    let (for_gamma, for_beta): (Vec<f32>, Vec<f32>) = {
        let grad: &[E] = grad.storage();
        let rows = channels.par_iter().enumerate();
        rows.map(|(c, channel)| parameter_grads(*channel, relu, (x, grad), sizes.rows(c)))
            .unzip()
    };
    let input_row = |row: usize, range: std::ops::Range<usize>, grad: &mut [E]| {
        let channel = channels[row];
        let means = [for_gamma[row], for_beta[row]]
            .map(|sum| (f64::from(sum) / sizes.per_channel()) as f32);
        input_grads_in_place(channel, relu, means, &x[range], grad);
    };
    // In place where nobody else holds the gradient; `storage_mut` copies it otherwise.
    let values: &mut [E] = grad.storage_mut();
    values
        .par_chunks_mut(sizes.image().max(1))
        .enumerate()
        .for_each(|(image, values)| {
            for (row, values) in values.chunks_mut(sizes.positions).enumerate() {
                let start = image * sizes.image() + row * sizes.positions;
                input_row(row, start..start + values.len(), values);
            }
        });
    debug_assert_eq!(grad.shape(), shape);
    NormActGrads {
        x: grad,
        gamma: tensor(for_gamma, [sizes.channels]),
        beta: tensor(for_beta, [sizes.channels]),
        residual,
    }
}

fn mask_by_output<E: Element>(grad: &mut FlexTensor, output: FlexTensor) {
    let output = contiguous(output);
    let output: &[E] = output.storage();
    let grad: &mut [E] = grad.storage_mut();
    grad.par_chunks_mut(BLOCK)
        .zip(output.par_chunks(BLOCK))
        .for_each(|(grad, output)| {
            let mut widened = [0.0; BLOCK];
            let widened = &mut widened[..output.len()];
            E::widen(output, widened);
            for (grad, output) in grad.iter_mut().zip(widened) {
                if *output <= 0.0 {
                    *grad = E::zeroed();
                }
            }
        });
}

/// Eq. (4) of Ioffe & Szegedy 2015 in the form that needs only the two parameter gradients.
fn input_grads_in_place<E: Element>(
    channel: Channel,
    relu: bool,
    [mean_gamma_grad, mean_beta_grad]: [f32; 2],
    x: &[E],
    grad: &mut [E],
) {
    let scale = channel.gamma * channel.inv_std;
    let (mut values, mut grads) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (x, grad) in x.chunks(BLOCK).zip(grad.chunks_mut(BLOCK)) {
        let (values, grads) = (&mut values[..x.len()], &mut grads[..x.len()]);
        E::widen(x, values);
        E::widen(grad, grads);
        for (x, g) in values.iter().zip(grads.iter_mut()) {
            let masked = if relu && channel.pre_activation(*x) <= 0.0 {
                0.0
            } else {
                *g
            };
            let normalised = (x - channel.mean) * channel.inv_std;
            *g = scale * (masked - mean_beta_grad - normalised * mean_gamma_grad);
        }
        E::narrow(grads, grad);
    }
}
