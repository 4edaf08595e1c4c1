//! The machine: how much memory there is and how much of it is free, and what computes.

use std::path::Path;

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::Bytes;

/// The memory of a card or of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// All of it.
    pub total: Bytes,
    /// What nobody uses, where the driver or system says so.
    pub free: Option<Bytes>,
}

/// The machine's memory, or what a container may use of it.
pub fn host() -> Space {
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory);
    let [mut total, mut free] = [system.total_memory(), system.available_memory()];
    if let Some(limits) = system
        .cgroup_limits()
        .filter(|limits| limits.total_memory > 0)
    {
        total = total.min(limits.total_memory);
        // What the container's files fill in the cache is given back when it is wanted.
        free = free.min(limits.total_memory.saturating_sub(limits.rss));
    }
    Space {
        total: Bytes(total),
        free: Some(Bytes(free)),
    }
}

/// What the CPU calls itself.
pub fn cpu() -> Option<String> {
    let system =
        System::new_with_specifics(RefreshKind::nothing().with_cpu(CpuRefreshKind::nothing()));
    let brand = system.cpus().first()?.brand().trim().to_owned();
    (!brand.is_empty()).then_some(brand)
}

/// A card of AMD's, from what its Linux driver writes under `/sys`.
pub(super) fn amd(pci_address: &str) -> Option<Space> {
    let folder = Path::new("/sys/bus/pci/devices").join(pci_address);
    let read = |file: &str| {
        let text = std::fs::read_to_string(folder.join(file)).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let total = read("mem_info_vram_total")?;
    Some(Space {
        total: Bytes(total),
        free: read("mem_info_vram_used").map(|used| Bytes(total.saturating_sub(used))),
    })
}
