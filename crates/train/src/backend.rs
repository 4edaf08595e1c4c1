//! What computes: a runtime, and which of its devices.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::names::names;

/// A runtime, and which of its devices, as `--backend` and the recipe's `backend` take it: `auto`,
/// `flex`, `cuda:1`, `wgpu:cpu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Backend {
    /// The runtime.
    pub kind: BackendKind,
    /// Which of its devices.
    pub index: Index,
}

/// A runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// CUDA where it is compiled in and there is a GPU, else ROCm, else a wgpu GPU, else flex.
    #[default]
    Auto,
    /// The CPU.
    Flex,
    /// Any GPU through wgpu's shader language; takes a software adapter where there is no other.
    Wgpu,
    /// A GPU through Vulkan and SPIR-V.
    Vulkan,
    /// An Apple GPU through Metal's own shader language.
    Metal,
    /// An NVIDIA GPU.
    Cuda,
    /// An AMD GPU.
    Rocm,
}

names!(
    BackendKind,
    "backend",
    [
        Auto = "auto",
        Flex = "flex",
        Wgpu = "wgpu",
        Vulkan = "vulkan",
        Metal = "metal",
        Cuda = "cuda",
        Rocm = "rocm",
    ]
);

/// Which device of a runtime, in the order of `leanburn devices`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Index {
    /// The first: a GPU where there is one.
    #[default]
    First,
    /// The one with this number, from 0.
    Nth(usize),
    /// wgpu's software adapter.
    Cpu,
}

impl From<BackendKind> for Backend {
    fn from(kind: BackendKind) -> Self {
        let index = Index::First;
        Self { kind, index }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        match self.index {
            Index::First => write!(f, "{kind}"),
            Index::Nth(n) => write!(f, "{kind}:{n}"),
            Index::Cpu => write!(f, "{kind}:cpu"),
        }
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, index) = match text.split_once(':') {
            None => return Ok(text.parse::<BackendKind>()?.into()),
            Some((kind, index)) => (kind.parse::<BackendKind>()?, index),
        };
        let number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
        let index = match (kind, index, index.parse()) {
            (BackendKind::Auto | BackendKind::Flex, ..) => {
                return Err(format!("'{text}': {kind} takes no index"));
            }
            (_, _, Ok(n)) if number => Index::Nth(n),
            (BackendKind::Wgpu | BackendKind::Vulkan, "cpu", _) => Index::Cpu,
            _ => {
                return Err(format!(
                    "'{text}': after the colon comes a device's number in `leanburn devices`, such as {kind}:0, or \
                     cpu for wgpu's software adapter"
                ));
            }
        };
        Ok(Self { kind, index })
    }
}

impl TryFrom<String> for Backend {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Backend> for String {
    fn from(backend: Backend) -> Self {
        backend.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in BackendKind::ALL {
            assert_eq!(kind.name().parse::<Backend>(), Ok((*kind).into()));
        }
        for name in ["cuda:1", "wgpu:cpu", "vulkan:0", "rocm:12"] {
            assert_eq!(name.parse::<Backend>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn what_cannot_be_says_what_can() {
        let wrong = |text: &str| text.parse::<Backend>().unwrap_err();
        let known = "auto, flex, wgpu, vulkan, metal, cuda or rocm";
        assert_eq!(wrong("gpu"), format!("unknown backend 'gpu': use {known}"));
        assert_eq!(wrong("flex:0"), "'flex:0': flex takes no index");
        for text in [
            "cuda:", "cuda:cpu", "cuda:-1", "cuda:+1", "wgpu:0:1", "cuda: 1",
        ] {
            assert!(wrong(text).contains("leanburn devices"), "{text}");
        }
        assert!(wrong("cuda:99999999999999999999").contains("leanburn devices"));
    }
}
