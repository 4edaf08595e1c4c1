//! What NVIDIA's driver says, through NVML.

use crate::Bytes;
use crate::device::Space;

/// A card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// Version of the driver.
    pub driver: Option<String>,
    /// Its memory.
    pub space: Option<Space>,
}

#[cfg(feature = "cuda")]
mod driver {
    use std::sync::OnceLock;

    use nvml_wrapper::{Nvml, enums::device::UsedGpuMemory};

    use super::{Bytes, Card, Space};

    /// `None` without a driver.
    fn nvml() -> Option<&'static Nvml> {
        // Loading the driver's library is slow, and it stays loaded.
        static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
        NVML.get_or_init(|| Nvml::init().ok()).as_ref()
    }

    pub fn gpu_bytes() -> Option<Bytes> {
        let nvml = nvml()?;
        let mut total: Option<Bytes> = None;
        for index in 0..nvml.device_count().ok()? {
            let device = nvml.device_by_index(index).ok()?;
            let processes = device.running_compute_processes().ok()?;
            let own = |pid| pid == std::process::id();
            for process in processes.iter().filter(|process| own(process.pid)) {
                let UsedGpuMemory::Used(bytes) = process.used_gpu_memory else {
                    return None;
                };
                total = total.unwrap_or_default().checked_add(Bytes(bytes));
            }
        }
        total
    }

    pub fn card(pci_address: &str) -> Option<Card> {
        let nvml = nvml()?;
        let device = nvml.device_by_pci_bus_id(pci_address).ok()?;
        let space = device.memory_info().ok().map(|memory| Space {
            total: Bytes(memory.total),
            free: Some(Bytes(memory.free)),
        });
        Some(Card {
            driver: nvml.sys_driver_version().ok(),
            space,
        })
    }
}

/// Not compiled for NVIDIA GPUs, so nobody knows.
#[cfg(not(feature = "cuda"))]
mod driver {
    use super::{Bytes, Card};

    pub fn gpu_bytes() -> Option<Bytes> {
        None
    }

    pub fn card(_pci_address: &str) -> Option<Card> {
        None
    }
}

/// Bytes of this process on all NVIDIA GPUs: context and kernels included.
///
/// `None` without a driver, and where the driver doesn't list this process: a container with its
/// own process ids, or a driver that doesn't account per process.
pub(crate) fn gpu_bytes() -> Option<Bytes> {
    driver::gpu_bytes()
}

/// The card at a PCI address such as `0000:01:00.0`.
pub(crate) fn card(pci_address: &str) -> Option<Card> {
    driver::card(pci_address)
}
