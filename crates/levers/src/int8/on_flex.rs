//! Layers in integers on the CPU backend.

use burn::backend::{BackendTensor, DispatchKindConversion, DispatchTensor, Flex};
use burn::nn::conv::Conv2d;
use burn::nn::{Linear, PaddingConfig2d};
use burn::tensor::{DType, Device, Tensor};
use burn_flex::{FlexQTensor, FlexTensor};

use super::Int8;
use super::kernel::{self, Conv, MAX_DEPTH};
use crate::ops::flex::element::{contiguous, tensor};
use crate::ops::{dispatch, primitive};

/// Whether this device is the CPU backend.
pub fn is(device: &Device) -> bool {
    *device == Device::flex()
}

/// `None` where the kernel does not do this convolution: inputs that are not rounded, another device or dtype,
/// uneven padding.
pub fn conv2d(layer: &Conv2d, int8: &Int8, x: &Tensor<4>) -> Option<Tensor<4>> {
    let input = int8.input?;
    let padding = match layer.padding {
        PaddingConfig2d::Valid => [0, 0],
        PaddingConfig2d::Explicit(top, left, bottom, right) if top == bottom && left == right => {
            [top, left]
        }
        _ => return None,
    };
    let [batch, channels_in, height, width] = x.dims();
    let [channels_out, ..] = layer.weight.lazy_shape().dims::<4>();
    let conv = Conv {
        batch,
        channels_in,
        channels_out,
        input: [height, width],
        kernel: layer.kernel_size,
        stride: layer.stride,
        padding,
        dilation: layer.dilation,
        groups: layer.groups,
    };
    if conv.depth() > MAX_DEPTH {
        return None;
    }
    let [rows, columns] = conv.output()?;
    let (x, weight) = (floats(x)?, integers(layer.weight.base())?);
    let (scale, bias) = (floats(&int8.scale.val())?, bias(&layer.bias)?);
    let y = kernel::conv2d(
        &conv,
        x.storage(),
        input,
        weight.storage(),
        scale.storage(),
        bias.as_ref().map(FlexTensor::storage),
    );
    let y = tensor(y, [batch, channels_out, rows, columns]);
    Some(Tensor::from_dispatch(dispatch::<Flex>(y)))
}

/// The same of a linear layer, for `x` `[rows, in]`.
pub fn linear(layer: &Linear, int8: &Int8, x: &Tensor<2>) -> Option<Tensor<2>> {
    let input = int8.input?;
    let [rows, width_in] = x.dims();
    let [_, width_out] = layer.weight.lazy_shape().dims::<2>();
    if width_in > MAX_DEPTH {
        return None;
    }
    let (x, weight) = (floats(x)?, integers(layer.weight.base())?);
    let (scale, bias) = (floats(&int8.scale.val())?, bias(&layer.bias)?);
    let y = kernel::linear(
        [rows, width_in, width_out],
        x.storage(),
        input,
        weight.storage(),
        scale.storage(),
        bias.as_ref().map(FlexTensor::storage),
    );
    let y = tensor(y, [rows, width_out]);
    Some(Tensor::from_dispatch(dispatch::<Flex>(y)))
}

/// A tensor of f32 without a graph.
fn floats<const D: usize>(x: &Tensor<D>) -> Option<FlexTensor> {
    if x.dtype() != DType::F32 {
        return None;
    }
    primitive::<Flex>(x.clone().into_dispatch()).map(contiguous)
}

/// A bias, if there is one and it can be had.
fn bias(bias: &Option<burn::module::Param<Tensor<1>>>) -> Option<Option<FlexTensor>> {
    bias.as_ref()
        .map(|bias| floats(&bias.val()))
        .map_or(Some(None), |bias| bias.map(Some))
}

/// The integers of a packed tensor.
fn integers<const D: usize>(base: Tensor<D>) -> Option<FlexTensor> {
    let packed: FlexQTensor = match DispatchTensor::try_into_backend(base.into_dispatch()) {
        Ok(BackendTensor::<Flex>::Quantized(packed)) => packed,
        _ => return None,
    };
    Some(contiguous(packed.tensor().clone()))
}
