//! Norms folded into the convolutions in front of them.

use burn::module::{Param, ParamId};
use burn::nn::BatchNorm;
use burn::nn::conv::Conv2d;
use burn::tensor::Tensor;

/// Why a norm cannot be folded.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// It has never seen a batch.
    #[error(
        "a BatchNorm of {0} channels has no statistics (its mean is 0 and its variance 1 throughout): train the \
         network first, or load trained weights"
    )]
    NoStatistics(usize),
    /// Not numbers, or negative variances.
    #[error(
        "a BatchNorm of {0} channels has broken statistics: its mean or variance is no number, or negative"
    )]
    Broken(usize),
    /// Channels do not match.
    #[error("a convolution with {conv} output channels in front of a BatchNorm of {norm}")]
    Channels {
        /// Output channels of the convolution.
        conv: usize,
        /// Channels of the norm.
        norm: usize,
    },
}

/// One convolution that computes what `conv` and then `norm` do in evaluation.
///
/// With `s = gamma / sqrt(var + epsilon)` the weight `[out, in, kh, kw]` is multiplied by `s` per output
/// channel, and the bias becomes `beta + (bias - mean) * s`; Jacob et al. 2018
/// (<https://arxiv.org/abs/1712.05877>), section 3.2. Statistics are the running ones.
///
/// # Errors
///
/// [`FoldError`] where the norm has no statistics of use.
pub fn fold(conv: Conv2d, norm: &BatchNorm) -> Result<Conv2d, FoldError> {
    let [mean, variance] = [&norm.running_mean, &norm.running_var].map(|state| state.value_sync());
    let (channels, out) = (mean.dims()[0], conv.weight.lazy_shape()[0]);
    if channels != out {
        return Err(FoldError::Channels {
            conv: out,
            norm: channels,
        });
    }
    let [means, variances] = [&mean, &variance].map(|tensor| {
        let data = tensor.clone().into_data().convert::<f32>();
        data.try_to_vec::<f32>().expect("f32, as converted")
    });
    if means.iter().all(|mean| *mean == 0.0) && variances.iter().all(|variance| *variance == 1.0) {
        return Err(FoldError::NoStatistics(channels));
    }
    let sound = |values: &[f32]| values.iter().all(|value| value.is_finite());
    if !sound(&means) || !sound(&variances) || variances.iter().any(|variance| *variance < 0.0) {
        return Err(FoldError::Broken(channels));
    }
    let scale = norm.gamma.val() / (variance + norm.epsilon).sqrt();
    let shift = match &conv.bias {
        Some(bias) => bias.val() - mean,
        None => -mean,
    };
    let bias: Tensor<1> = norm.beta.val() + shift * scale.clone();
    let mut folded = conv;
    folded.weight = folded
        .weight
        .map(|weight| (weight * scale.reshape([out, 1, 1, 1])).detach());
    let id = folded
        .bias
        .as_ref()
        .map_or_else(ParamId::new, |bias| bias.id);
    folded.bias = Some(Param::initialized(id, bias.detach()));
    Ok(folded)
}
