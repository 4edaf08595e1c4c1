//! Large activations moved into weights, where a scale per channel takes care of them.

use burn::module::Param;
use burn::nn::Linear;
use burn::tensor::{Tensor, TensorData};

use crate::tensors::host;

/// Why a norm cannot be smoothed.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum SmoothError {
    /// Outside of 0 to 1.
    #[error("alpha {0} is outside of 0 (weights stay) to 1 (inputs become equal); 0.5 is usual")]
    Alpha(f32),
    /// Sizes do not match.
    #[error(
        "largest inputs of {found} channels for a norm of {channels}: calibrate this very network"
    )]
    Channels {
        /// In the calibration.
        found: usize,
        /// Of the norm.
        channels: usize,
    },
}

/// Divides a norm's output by `s` and multiplies the weights of the layers that read it by the same, so that
/// the network computes what it did: `s_j = max|x_j|^alpha / max|w_j|^(1 - alpha)` per channel `j`.
///
/// Xiao et al., *SmoothQuant*, 2022 (<https://arxiv.org/abs/2211.10438>), equation 4. `largest` is `max|x_j|`
/// of the norm's output, from calibration; all `readers` see the same input `[.., channels]`, and nothing else
/// may. A channel that was always zero, or whose weights are, stays as it is.
pub fn smooth(
    gamma: &mut Param<Tensor<1>>,
    beta: Option<&mut Param<Tensor<1>>>,
    readers: &mut [&mut Linear],
    largest: &[f32],
    alpha: f32,
) -> Result<(), SmoothError> {
    if !(0.0..=1.0).contains(&alpha) {
        return Err(SmoothError::Alpha(alpha));
    }
    let channels = gamma.lazy_shape()[0];
    if largest.len() != channels {
        return Err(SmoothError::Channels {
            found: largest.len(),
            channels,
        });
    }
    let mut weights = vec![0.0f32; channels];
    for reader in readers.iter() {
        let rows = reader.weight.val().abs().max_dim(1);
        for (weight, row) in weights.iter_mut().zip(host(rows)) {
            *weight = weight.max(row);
        }
    }
    let factors: Vec<f32> = largest
        .iter()
        .zip(&weights)
        .map(|(x, w)| {
            let factor = x.powf(alpha) / w.powf(1.0 - alpha);
            match *x > 0.0 && *w > 0.0 && factor.is_normal() {
                true => factor,
                false => 1.0,
            }
        })
        .collect();
    let factors = TensorData::new(factors, [channels]);
    let factors = Tensor::<1>::from_data(factors, &gamma.lazy_device());
    let divided = |param: &mut Param<Tensor<1>>| {
        *param = param
            .clone()
            .map(|value| (value / factors.clone()).detach());
    };
    divided(gamma);
    beta.map(divided);
    for reader in readers {
        let factors = factors.clone().unsqueeze_dim::<2>(1);
        reader.weight = reader
            .weight
            .clone()
            .map(|weight| (weight * factors).detach());
    }
    Ok(())
}
