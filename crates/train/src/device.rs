//! Which device to compute on. Burn's own default goes by compiled features and probes nothing.

use burn::tensor::Device;
#[cfg(feature = "wgpu")]
use burn::tensor::{DeviceKind, DeviceType};
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::names::names;

/// What `--backend` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// CUDA where it is compiled in and there is a GPU, else a wgpu GPU, else flex.
    #[default]
    Auto,
    /// The CPU.
    Flex,
    /// Any GPU through wgpu's shader language; takes a software adapter where there is no other.
    Wgpu,
    /// A GPU through Vulkan and SPIR-V.
    Vulkan,
    /// An NVIDIA GPU.
    Cuda,
    /// An AMD GPU.
    Rocm,
}

names!(
    Backend,
    "backend",
    [
        Auto = "auto",
        Flex = "flex",
        Wgpu = "wgpu",
        Vulkan = "vulkan",
        Cuda = "cuda",
        Rocm = "rocm",
    ]
);

/// A device, and why it was taken.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Without autodiff.
    pub device: Device,
    /// Never `Auto`.
    pub backend: Backend,
    /// For the first line of a run.
    pub why: String,
}

impl Chosen {
    #[cfg_attr(
        not(any(feature = "flex", feature = "wgpu", feature = "cuda")),
        allow(dead_code)
    )]
    fn new(device: Device, backend: Backend, why: impl Into<String>) -> Self {
        Self {
            device,
            backend,
            why: why.into(),
        }
    }
}

/// Opens the backend, or says what is missing and what to use instead.
pub fn choose(backend: Backend) -> Result<Chosen, TrainError> {
    match backend {
        Backend::Auto => auto(),
        Backend::Flex => flex("asked for"),
        Backend::Wgpu => wgpu(),
        Backend::Vulkan => vulkan(),
        Backend::Cuda => cuda().ok_or_else(|| {
            let reason = "no NVIDIA driver or no GPU found";
            missing("cuda", cfg!(feature = "cuda"), reason)
        }),
        Backend::Rocm => {
            rocm().ok_or_else(|| missing("rocm", cfg!(feature = "rocm"), "no AMD GPU found"))
        }
    }
}

fn missing(backend: &str, compiled: bool, reason: &str) -> TrainError {
    TrainError::Device(if compiled {
        format!("--backend {backend}: {reason}; use --backend flex to compute on the CPU")
    } else {
        format!(
            "--backend {backend}: not compiled in; build with --features {backend}, or use --backend auto"
        )
    })
}

fn auto() -> Result<Chosen, TrainError> {
    if let Some(chosen) = cuda().or_else(rocm) {
        return Ok(chosen);
    }
    #[cfg(feature = "wgpu")]
    {
        let present = Device::enumerate(DeviceType::Wgpu).into_vec();
        for (kind, what) in [
            (DeviceKind::DiscreteGpu(0), "a discrete GPU"),
            (DeviceKind::IntegratedGpu(0), "an integrated GPU"),
        ] {
            let device = Device::wgpu(kind);
            if present.contains(&device) {
                return Ok(Chosen::new(device, Backend::Wgpu, format!("found {what}")));
            }
        }
    }
    flex("no GPU found")
}

#[cfg_attr(not(feature = "flex"), allow(unused_variables))]
fn flex(why: &str) -> Result<Chosen, TrainError> {
    #[cfg(feature = "flex")]
    return Ok(Chosen::new(Device::flex(), Backend::Flex, why));
    #[cfg(not(feature = "flex"))]
    Err(missing("flex", false, ""))
}

fn wgpu() -> Result<Chosen, TrainError> {
    #[cfg(feature = "wgpu")]
    {
        let present = Device::enumerate(DeviceType::Wgpu).into_vec();
        let gpu = [
            DeviceKind::DiscreteGpu(0),
            DeviceKind::IntegratedGpu(0),
            DeviceKind::VirtualGpu(0),
        ]
        .into_iter()
        .map(Device::wgpu)
        .find(|device| present.contains(device));
        match (gpu, present.into_iter().next()) {
            (Some(device), _) => return Ok(Chosen::new(device, Backend::Wgpu, "asked for")),
            (None, Some(device)) => {
                let why = "asked for; a software adapter, the machine has no other";
                return Ok(Chosen::new(device, Backend::Wgpu, why));
            }
            (None, None) => {}
        }
    }
    let reason = "no adapter found; install a Vulkan driver";
    Err(missing("wgpu", cfg!(feature = "wgpu"), reason))
}

fn vulkan() -> Result<Chosen, TrainError> {
    #[cfg(feature = "vulkan")]
    if let Some(device) = Device::enumerate(DeviceType::Vulkan)
        .into_vec()
        .into_iter()
        .next()
    {
        return Ok(Chosen::new(device, Backend::Vulkan, "asked for"));
    }
    let reason = "no Vulkan adapter found; install a driver";
    Err(missing("vulkan", cfg!(feature = "vulkan"), reason))
}

fn rocm() -> Option<Chosen> {
    #[cfg(feature = "rocm")]
    {
        let present = Device::enumerate(burn::tensor::DeviceType::Rocm).into_vec();
        if let Some(device) = present.into_iter().next() {
            return Some(Chosen::new(device, Backend::Rocm, "found an AMD GPU"));
        }
    }
    None
}

fn cuda() -> Option<Chosen> {
    #[cfg(feature = "cuda")]
    {
        // Safe without a driver: the list is then empty.
        let present = Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec();
        if let Some(device) = present.into_iter().next() {
            return Some(Chosen::new(device, Backend::Cuda, "found an NVIDIA GPU"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for backend in Backend::ALL {
            assert_eq!(backend.name().parse(), Ok(*backend));
        }
        let error = "gpu".parse::<Backend>().unwrap_err();
        let known = "auto, flex, wgpu, vulkan, cuda or rocm";
        assert_eq!(error, format!("unknown backend 'gpu': use {known}"));
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_backend_that_is_not_there_says_how_to_get_it() {
        let error = choose(Backend::Cuda).unwrap_err();
        assert!(error.is_wrong_use());
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }
}
