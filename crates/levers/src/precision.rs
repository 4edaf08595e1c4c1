//! Mixed precision: which dtype parameters are stored in, computed in, and handed out in.
//!
//! The policy is jmp's (<https://github.com/google-deepmind/jmp>): three dtypes and a string form.
//! It attaches to an unmodified Burn module through reparameterization: `param.val()` gives the
//! compute dtype, `param.base()` the stored f32 master, and gradients arrive at the master in f32.

use std::fmt;
use std::str::FromStr;

use burn::module::{Module, Param, Reparameterization, Reparameterizer};
use burn::tensor::{DType, Device, FloatDType, Tensor};
use serde::{Deserialize, Serialize};

/// Why a precision was refused.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum PolicyError {
    /// The text names no precision.
    #[error(
        "unknown precision '{0}': use auto, fp32, f16, bf16, or a policy such as \
         'params=f32,compute=bf16,output=f32'"
    )]
    Unknown(String),
    /// A key other than params, compute, output, or one of them twice.
    #[error("policy '{0}': want each of params=, compute= and output= at most once, not '{1}'")]
    Key(String, String),
    /// Masters in half precision lose small updates (an update below 2^-11 of the weight rounds away).
    #[error("policy '{0}': params must be f32, so that small updates are not rounded away")]
    Master(String),
    /// Logits and losses in half precision overflow and round.
    #[error("policy '{0}': output must be f32, so that logits and loss are exact")]
    Output(String),
    /// The device cannot compute in this dtype.
    #[error("{device} does not support {dtype}: use --precision fp32, or auto")]
    Unsupported {
        /// The device, in words.
        device: String,
        /// The dtype asked for.
        dtype: &'static str,
    },
}

/// A float dtype that a policy may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// IEEE single precision.
    F32,
    /// IEEE half precision: 11 significant bits, largest number 65,504.
    F16,
    /// bfloat16: 8 significant bits, the range of f32.
    Bf16,
}

impl Precision {
    /// As Burn names it.
    pub fn dtype(self) -> FloatDType {
        match self {
            Self::F32 => FloatDType::F32,
            Self::F16 => FloatDType::F16,
            Self::Bf16 => FloatDType::BF16,
        }
    }

    /// As the string forms name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "f32" | "fp32" | "float32" => Some(Self::F32),
            "f16" | "fp16" | "float16" | "half" => Some(Self::F16),
            "bf16" | "bfloat16" => Some(Self::Bf16),
            _ => None,
        }
    }
}

/// Dtypes of stored parameters, of the computation, and of what the model hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Master weights; always f32.
    pub params: Precision,
    /// Operands of matrix products and convolutions, and the activations between them.
    pub compute: Precision,
    /// Logits and loss; always f32.
    pub output: Precision,
}

impl Policy {
    /// Everything in f32.
    pub const FP32: Self = Self::computing(Precision::F32);

    /// f32 masters and outputs around the given compute dtype.
    pub const fn computing(compute: Precision) -> Self {
        Self {
            params: Precision::F32,
            compute,
            output: Precision::F32,
        }
    }

    /// What `auto` means on a device: bf16, which needs no loss scaling, else f16, else f32.
    pub fn auto(device: &Device) -> Self {
        [Precision::Bf16, Precision::F16]
            .into_iter()
            .find(|half| device.supports_dtype(DType::from(half.dtype())))
            .map_or(Self::FP32, Self::computing)
    }

    /// Resolves a string form for a device; `auto` asks the device.
    pub fn resolve(text: &str, device: &Device) -> Result<Self, PolicyError> {
        let policy = match text.trim() {
            "auto" => Self::auto(device),
            text => text.parse()?,
        };
        for precision in [policy.params, policy.compute, policy.output] {
            if !device.supports_dtype(DType::from(precision.dtype())) {
                return Err(PolicyError::Unsupported {
                    device: format!("{device:?}"),
                    dtype: precision.name(),
                });
            }
        }
        Ok(policy)
    }

    /// Puts a cast in front of every parameter that takes part in a product.
    ///
    /// Norms keep their f32 parameters (`gamma`, `beta` in Burn's modules), and so does everything
    /// under one of the path prefixes in `keep_f32`, such as a classifier head.
    pub fn attach<M: Module>(self, module: M, keep_f32: &[&str]) -> M {
        if self.compute == self.params {
            return module;
        }
        module.apply_reparameterization(Attach {
            cast: CastTo {
                bf16: self.compute == Precision::Bf16,
            },
            keep_f32,
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let [params, compute, output] =
            [self.params, self.compute, self.output].map(Precision::name);
        write!(f, "params={params},compute={compute},output={output}")
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        if let Some(compute) = Precision::parse(text) {
            return Ok(Self::computing(compute));
        }
        let unknown = || PolicyError::Unknown(text.to_owned());
        let (mut params, mut compute, mut output) = (None, None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(unknown)?;
            let value = Precision::parse(value).ok_or_else(unknown)?;
            let slot = match key.trim() {
                "params" => &mut params,
                "compute" => &mut compute,
                "output" => &mut output,
                _ => return Err(PolicyError::Key(text.to_owned(), part.to_owned())),
            };
            if slot.replace(value).is_some() {
                return Err(PolicyError::Key(text.to_owned(), part.to_owned()));
            }
        }
        let policy = Self {
            params: params.unwrap_or(Precision::F32),
            compute: compute.unwrap_or(Precision::F32),
            output: output.unwrap_or(Precision::F32),
        };
        match (policy.params, policy.output) {
            (Precision::F32, Precision::F32) => Ok(policy),
            (Precision::F32, _) => Err(PolicyError::Output(text.to_owned())),
            _ => Err(PolicyError::Master(text.to_owned())),
        }
    }
}

/// The cast that a policy attaches to a parameter.
#[derive(Module, Debug)]
pub struct CastTo {
    bf16: bool,
}

impl CastTo {
    /// The compute dtype.
    pub fn dtype(&self) -> FloatDType {
        if self.bf16 {
            FloatDType::BF16
        } else {
            FloatDType::F16
        }
    }

    /// An input in the compute dtype.
    pub fn input<const D: usize>(&self, x: Tensor<D>) -> Tensor<D> {
        x.cast(self.dtype())
    }
}

impl Reparameterization for CastTo {
    const NAME: &'static str = "compute_dtype";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        base.cast(self.dtype())
    }
}

struct Attach<'a> {
    cast: CastTo,
    keep_f32: &'a [&'a str],
}

impl Reparameterizer for Attach<'_> {
    type Reparam = CastTo;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<CastTo>) {
        let name = path.rsplit('.').next().unwrap_or(path);
        let norm = matches!(name, "gamma" | "beta" | "running_mean" | "running_var");
        let kept = self.keep_f32.iter().any(|prefix| {
            path.strip_prefix(prefix)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        });
        let cast = (!norm && !kept).then(|| self.cast.clone());
        (param, cast)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_forms_round_trip() {
        for compute in [Precision::F32, Precision::F16, Precision::Bf16] {
            let policy = Policy::computing(compute);
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("fp32".parse(), Ok(Policy::FP32));
        assert_eq!("compute=f16".parse(), Ok(Policy::computing(Precision::F16)));
    }

    #[test]
    fn wrong_forms_say_what_is_wrong() {
        assert!(matches!(
            "f8".parse::<Policy>(),
            Err(PolicyError::Unknown(_))
        ));
        assert!(matches!(
            "compute=f16,weights=f32".parse::<Policy>(),
            Err(PolicyError::Key(..))
        ));
        assert!(matches!(
            "compute=f16,compute=f16".parse::<Policy>(),
            Err(PolicyError::Key(..))
        ));
        assert!(matches!(
            "compute=f16,output=f16".parse::<Policy>(),
            Err(PolicyError::Output(_))
        ));
        assert!(matches!(
            "params=f16".parse::<Policy>(),
            Err(PolicyError::Master(_))
        ));
    }
}
