//! Which device to compute on. Burn's own default goes by compiled features and probes nothing, and panics at
//! the first operation where there is no such device; here every device is asked for before it is used.

mod found;
mod open;

use burn::tensor::Device;
use leanburn_memory::Properties;

use crate::{Backend, BackendKind, Index, TrainError};

pub use found::{Found, devices, not_compiled_in};

/// A device, and why it was taken.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Without autodiff.
    pub device: Device,
    /// Never `auto`.
    pub backend: Backend,
    /// Computes on the CPU: flex, or a software adapter.
    pub is_software: bool,
    /// For the first line of a run.
    pub why: String,
    /// Version of the driver, where the adapter says one.
    driver: Option<String>,
}

impl Chosen {
    /// What the device says of itself.
    pub fn properties(&self) -> Properties {
        let device = self.device.clone().without_autodiff();
        let mut properties = Properties::of(&device, self.is_software);
        properties.driver = properties.driver.or_else(|| self.driver.clone());
        properties
    }
}

/// Backends that are compiled in and have a device, the CPU first.
pub fn available() -> Vec<Backend> {
    let kinds = BackendKind::ALL.iter().copied();
    let there = kinds.filter(|kind| found::present(*kind).is_some_and(|places| !places.is_empty()));
    there.map(Backend::from).collect()
}

/// Opens the backend's device, or says what is missing and what to use instead.
///
/// # Errors
///
/// [`TrainError::Device`] where the backend is not compiled in, where there is no driver or no such device,
/// and where the driver cannot open it.
pub fn choose(backend: Backend) -> Result<Chosen, TrainError> {
    if backend.kind == BackendKind::Auto {
        return auto();
    }
    let Some(present) = found::present(backend.kind) else {
        return Err(TrainError::Device(format!(
            "--backend {backend}: not compiled in; build with --features {}, or use --backend auto",
            backend.kind
        )));
    };
    let at = match backend.index {
        Index::First => 0,
        Index::Nth(n) => n,
        Index::Cpu => software(&present).ok_or_else(|| {
            missing(
                backend,
                "no software adapter found; install one, such as Mesa's lavapipe",
            )
        })?,
    };
    let Some(place) = present.into_iter().nth(at) else {
        return Err(match at {
            0 => missing(backend, absent(backend.kind)),
            _ => missing(
                backend,
                "there is no device of that number, see `leanburn devices`",
            ),
        });
    };
    open::open(&place).map_err(|cause| missing(backend, &cause))?;
    let why = match (place.is_software, backend.kind) {
        (true, BackendKind::Flex) | (false, _) => "asked for",
        (true, _) if backend.index == Index::First => {
            "asked for; a software adapter, the machine has no other"
        }
        (true, _) => "asked for; a software adapter",
    };
    Ok(chosen(place, backend, why))
}

fn software(present: &[found::Place]) -> Option<usize> {
    present.iter().position(|place| place.is_software)
}

fn chosen(place: found::Place, backend: Backend, why: &str) -> Chosen {
    Chosen {
        driver: open::driver(&place),
        device: place.device,
        backend,
        is_software: place.is_software,
        why: why.into(),
    }
}

/// The best GPU that opens, else the CPU.
fn auto() -> Result<Chosen, TrainError> {
    let mut refused = String::new();
    for kind in [BackendKind::Cuda, BackendKind::Rocm, BackendKind::Wgpu] {
        let present = found::present(kind).unwrap_or_default();
        let gpu = present.into_iter().find(|place| !place.is_software);
        let Some(place) = gpu else { continue };
        match open::open(&place) {
            Ok(()) => {
                let why = format!("found {}", place.what);
                return Ok(chosen(place, kind.into(), &why));
            }
            Err(cause) => refused = format!("; {kind} did not open: {cause}"),
        }
    }
    let flex = found::present(BackendKind::Flex);
    let why = format!("no GPU found{refused}");
    match flex.and_then(|places| places.into_iter().next()) {
        Some(place) => Ok(chosen(place, BackendKind::Flex.into(), &why)),
        None => Err(TrainError::Device(format!(
            "{why}, and the CPU is not compiled in; build with --features flex"
        ))),
    }
}

fn missing(backend: Backend, reason: &str) -> TrainError {
    TrainError::Device(format!(
        "--backend {backend}: {reason}; use --backend flex to compute on the CPU"
    ))
}

/// Why a backend that is compiled in may have no device.
fn absent(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Cuda => "no NVIDIA driver or no GPU found",
        BackendKind::Rocm => "no AMD GPU found",
        BackendKind::Metal => "no Apple GPU found",
        BackendKind::Vulkan => "no Vulkan adapter found; install a driver",
        _ => "no adapter found; install a Vulkan driver",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_backend_that_is_not_there_says_how_to_get_it() {
        let error = choose(BackendKind::Cuda.into()).unwrap_err();
        assert!(error.is_wrong_use());
        assert!(error.to_string().contains("--features cuda"), "{error}");
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn cuda_without_a_driver_is_no_panic() {
        if devices(BackendKind::Cuda).is_empty() {
            let error = choose(BackendKind::Cuda.into()).unwrap_err().to_string();
            assert!(error.contains("no NVIDIA driver"), "{error}");
        }
    }

    #[cfg(feature = "wgpu")]
    #[test]
    fn a_number_beyond_the_last_device_is_refused() {
        let error = choose("wgpu:4096".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("leanburn devices"), "{error}");
    }
}
