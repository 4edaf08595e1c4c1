//! What the driver says this process holds on the GPUs.

use crate::Bytes;

/// Bytes of this process on all NVIDIA GPUs: context and kernels included.
///
/// `None` without a driver, and where the driver doesn't list this process: a container with its
/// own process ids, or a driver that doesn't account per process.
#[cfg(feature = "cuda")]
pub(crate) fn gpu_bytes() -> Option<Bytes> {
    use std::sync::OnceLock;

    use nvml_wrapper::{Nvml, enums::device::UsedGpuMemory};

    // Loading the driver's library is slow, and it stays loaded.
    static NVML: OnceLock<Option<Nvml>> = OnceLock::new();
    let nvml = NVML.get_or_init(|| Nvml::init().ok()).as_ref()?;

    let mut total: Option<Bytes> = None;
    for index in 0..nvml.device_count().ok()? {
        let processes = nvml
            .device_by_index(index)
            .ok()?
            .running_compute_processes()
            .ok()?;
        for process in processes
            .iter()
            .filter(|process| process.pid == std::process::id())
        {
            let UsedGpuMemory::Used(bytes) = process.used_gpu_memory else {
                return None;
            };
            total = total.unwrap_or_default().checked_add(Bytes(bytes));
        }
    }
    total
}

/// Not compiled for NVIDIA GPUs, so nobody knows.
#[cfg(not(feature = "cuda"))]
pub(crate) fn gpu_bytes() -> Option<Bytes> {
    None
}
