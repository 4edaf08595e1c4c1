//! BatchNorm with its activation: two reads of the input forward, two backward, nothing else kept.

use std::ops::Range;

use burn::backend::{Flex, TensorMetadata};
use burn_flex::FlexTensor;
use rayon::prelude::*;

use super::super::kernels::{Activation, NormAct, NormActGrads};
use super::element::{Element, contiguous, tensor};
use super::rows::{BLOCK, sum};

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

    /// Neighbouring channels that are worked on together, so that a block is never a few values.
    fn groups(self) -> Vec<Range<usize>> {
        let size = (BLOCK / self.positions.max(1)).max(1);
        (0..self.channels)
            .step_by(size)
            .map(|first| first..(first + size).min(self.channels))
            .collect()
    }

    /// Blocks of a group: where they lie in an image, and the channel of their first value.
    fn blocks(self, group: Range<usize>) -> impl Iterator<Item = (Range<usize>, usize)> {
        let end = group.end * self.positions;
        (group.start * self.positions..end)
            .step_by(BLOCK)
            .map(move |start| (start..(start + BLOCK).min(end), start / self.positions))
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

    /// Zeroes the gradients of values that the ReLU stopped.
    fn mask(&self, x: &[f32], grad: &mut [f32]) {
        for (x, grad) in x.iter().zip(grad) {
            *grad = if self.pre_activation(*x) <= 0.0 {
                0.0
            } else {
                *grad
            };
        }
    }
}

fn channels(norm: &NormAct<Flex>) -> Vec<Channel> {
    let parameters = [&norm.gamma, &norm.beta, &norm.mean, &norm.variance];
    let [gamma, beta, mean, variance] = parameters.map(|parameter| contiguous(parameter.clone()));
    let variance: &[f32] = variance.storage();
    let [gamma, beta, mean] = [&gamma, &beta, &mean].map(FlexTensor::storage::<f32>);
    let inv_std = |v: f32| (1.0 / (f64::from(v) + norm.epsilon).sqrt()) as f32;
    (0..gamma.len())
        .map(|c| Channel {
            mean: mean[c],
            inv_std: inv_std(variance[c]),
            gamma: gamma[c],
            beta: beta[c],
        })
        .collect()
}

/// Mean and biased variance of each channel of a group.
fn statistics<E: Element>(x: &[E], sizes: Sizes, group: Range<usize>) -> Vec<(f32, f32)> {
    let mean_of = |subtract: &dyn Fn(usize, &mut [f32])| -> Vec<f32> {
        let mut sums = vec![0.0f64; group.len()];
        let mut buffer = [0.0; BLOCK];
        for image in x.chunks(sizes.image()) {
            for (range, first) in sizes.blocks(group.clone()) {
                let values = &mut buffer[..range.len()];
                E::widen(&image[range], values);
                for (row, values) in values.chunks_mut(sizes.positions).enumerate() {
                    let channel = first + row - group.start;
                    subtract(channel, values);
                    sums[channel] += sum(values);
                }
            }
        }
        sums.iter()
            .map(|sum| (sum / sizes.per_channel()) as f32)
            .collect()
    };
    let mean = mean_of(&|_, _| ());
    let variance = mean_of(&|channel, values| {
        let mean = mean[channel];
        for value in values {
            *value = (*value - mean) * (*value - mean);
        }
    });
    mean.into_iter().zip(variance).collect()
}

pub fn forward<E: Element>(
    x: FlexTensor,
    gamma: FlexTensor,
    beta: FlexTensor,
    residual: Option<FlexTensor>,
    epsilon: f64,
    activation: Activation,
) -> (FlexTensor, NormAct<Flex>) {
    let sizes = Sizes::of(&x);
    let x = contiguous(x);
    let values: &[E] = x.storage();
    let groups = sizes.groups();
    let per_group = groups
        .par_iter()
        .map(|group| statistics(values, sizes, group.clone()));
    let statistics: Vec<Vec<(f32, f32)>> = per_group.collect();
    let (mean, variance): (Vec<f32>, Vec<f32>) = statistics.into_iter().flatten().unzip();
    let [mean, variance] = [mean, variance].map(|values| tensor(values, [sizes.channels]));
    let norm = NormAct {
        gamma,
        beta,
        mean,
        variance,
        epsilon,
        activation,
    };
    (apply::<E>(x, &norm, residual), norm)
}

/// The output, from statistics that are known.
pub fn apply<E: Element>(
    x: FlexTensor,
    norm: &NormAct<Flex>,
    residual: Option<FlexTensor>,
) -> FlexTensor {
    let (shape, sizes, groups) = (x.shape(), Sizes::of(&x), Sizes::of(&x).groups());
    let x = contiguous(x);
    let residual = residual.map(contiguous);
    let values: &[E] = x.storage();
    let residual: Option<&[E]> = residual.as_ref().map(FlexTensor::storage);
    let channels = channels(norm);

    let mut output = vec![E::zeroed(); values.len()];
    let images = output.par_chunks_mut(sizes.image().max(1)).enumerate();
    images.for_each(|(index, output)| {
        let image = index * sizes.image()..(index + 1) * sizes.image();
        let x = &values[image.clone()];
        let residual = residual.map(|residual| &residual[image]);
        let (mut buffer, mut added) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (range, first) in groups.iter().flat_map(|group| sizes.blocks(group.clone())) {
            let values = &mut buffer[..range.len()];
            E::widen(&x[range.clone()], values);
            for (row, values) in values.chunks_mut(sizes.positions).enumerate() {
                let channel = channels[first + row];
                for value in values {
                    *value = channel.pre_activation(*value);
                }
            }
            if let Some(residual) = residual {
                let added = &mut added[..range.len()];
                E::widen(&residual[range.clone()], added);
                for (value, added) in values.iter_mut().zip(added) {
                    *value += *added;
                }
            }
            if norm.activation == Activation::Relu {
                for value in values.iter_mut() {
                    // NaN stays NaN, as in PyTorch.
                    *value = if *value <= 0.0 { 0.0 } else { *value };
                }
            }
            E::narrow(values, &mut output[range]);
        }
    });
    tensor(output, shape)
}

/// Gradients of gamma and beta for the channels of a group.
fn parameter_grads<E: Element>(
    channels: &[Channel],
    relu: bool,
    (x, grad): (&[E], &[E]),
    sizes: Sizes,
    group: Range<usize>,
) -> Vec<(f32, f32)> {
    let mut sums = vec![(0.0f64, 0.0f64); group.len()];
    let (mut values, mut grads) = ([0.0; BLOCK], [0.0; BLOCK]);
    for (x, grad) in x.chunks(sizes.image()).zip(grad.chunks(sizes.image())) {
        for (range, first) in sizes.blocks(group.clone()) {
            let (values, grads) = (&mut values[..range.len()], &mut grads[..range.len()]);
            E::widen(&x[range.clone()], values);
            E::widen(&grad[range], grads);
            let rows = values
                .chunks_mut(sizes.positions)
                .zip(grads.chunks_mut(sizes.positions));
            for (row, (values, grads)) in rows.enumerate() {
                let channel = channels[first + row];
                if relu {
                    channel.mask(values, grads);
                }
                for (value, grad) in values.iter_mut().zip(&*grads) {
                    *value = (*value - channel.mean) * grad;
                }
                let (for_gamma, for_beta) = &mut sums[first + row - group.start];
                *for_gamma += sum(values);
                *for_beta += sum(grads);
            }
        }
    }
    let inv_std = channels[group]
        .iter()
        .map(|channel| f64::from(channel.inv_std));
    let scaled = sums.into_iter().zip(inv_std);
    scaled
        .map(|((for_gamma, for_beta), inv_std)| ((for_gamma * inv_std) as f32, for_beta as f32))
        .collect()
}

pub fn backward<E: Element>(
    x: FlexTensor,
    norm: NormAct<Flex>,
    output: Option<FlexTensor>,
    grad: FlexTensor,
    wants_residual: bool,
) -> NormActGrads<Flex> {
    let sizes = Sizes::of(&x);
    let mut grad = contiguous(grad);
    let mut relu = norm.activation == Activation::Relu;
    if let (Some(output), true) = (output, relu) {
        grad = relu_mask::<E>(output, grad);
        relu = false;
    }
    // The residual takes the masked gradient itself, not a copy of it.
    let residual = wants_residual.then(|| grad.clone());

    let x = contiguous(x);
    let channels = channels(&norm);
    let x: &[E] = x.storage();
    let groups = sizes.groups();
    let sums: Vec<Vec<(f32, f32)>> = {
        let grad: &[E] = grad.storage();
        let per_group = groups
            .par_iter()
            .map(|group| parameter_grads(&channels, relu, (x, grad), sizes, group.clone()));
        per_group.collect()
    };
    let (for_gamma, for_beta): (Vec<f32>, Vec<f32>) = sums.into_iter().flatten().unzip();
    // In place where nobody else holds the gradient; `storage_mut` copies it otherwise.
    let values: &mut [E] = grad.storage_mut();
    let images = values.par_chunks_mut(sizes.image().max(1)).enumerate();
    images.for_each(|(index, grad)| {
        let x = &x[index * sizes.image()..(index + 1) * sizes.image()];
        let (mut values, mut grads) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (range, first) in groups.iter().flat_map(|group| sizes.blocks(group.clone())) {
            let (values, grads) = (&mut values[..range.len()], &mut grads[..range.len()]);
            E::widen(&x[range.clone()], values);
            E::widen(&grad[range.clone()], grads);
            let rows = values
                .chunks(sizes.positions)
                .zip(grads.chunks_mut(sizes.positions));
            for (row, (values, grads)) in rows.enumerate() {
                let row = first + row;
                let means = [for_gamma[row], for_beta[row]]
                    .map(|sum| (f64::from(sum) / sizes.per_channel()) as f32);
                if relu {
                    channels[row].mask(values, grads);
                }
                input_grads(channels[row], means, values, grads);
            }
            E::narrow(grads, &mut grad[range]);
        }
    });
    NormActGrads {
        x: grad,
        gamma: tensor(for_gamma, [sizes.channels]),
        beta: tensor(for_beta, [sizes.channels]),
        residual,
    }
}

/// The gradient behind a ReLU, in place where nobody else holds it.
pub fn relu_mask<E: Element>(output: FlexTensor, grad: FlexTensor) -> FlexTensor {
    let (output, mut grad) = (contiguous(output), contiguous(grad));
    let output: &[E] = output.storage();
    let values: &mut [E] = grad.storage_mut();
    let blocks = values.par_chunks_mut(BLOCK).zip(output.par_chunks(BLOCK));
    blocks.with_min_len(64).for_each(|(grad, output)| {
        let mut widened = [0.0; BLOCK];
        let widened = &mut widened[..output.len()];
        E::widen(output, widened);
        for (grad, output) in grad.iter_mut().zip(widened) {
            if *output <= 0.0 {
                *grad = E::zeroed();
            }
        }
    });
    grad
}

/// From the gradient of the output to that of the input: the backward of Ioffe & Szegedy 2015 in the
/// form that needs, besides the values, only the means of the two parameter gradients.
fn input_grads(
    channel: Channel,
    [mean_gamma_grad, mean_beta_grad]: [f32; 2],
    x: &[f32],
    grad: &mut [f32],
) {
    let scale = channel.gamma * channel.inv_std;
    for (x, grad) in x.iter().zip(grad) {
        let normalised = (x - channel.mean) * channel.inv_std;
        *grad = scale * (*grad - mean_beta_grad - normalised * mean_gamma_grad);
    }
}
