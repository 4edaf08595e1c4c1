//! What a device allows its pools, and what its runtime does when they are full.

use cubecl_ir::MemoryDeviceProperties;

use crate::Bytes;

/// The largest size that cubecl's rounding cannot wrap; no device has as much.
const MOST: u64 = 1 << 48;

/// What drives the pools. The pools are the same; what happens near the end is not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// wgpu with WGSL, which does not know how much memory the device has: nothing is moved off
    /// outdated pages to make room, and a refused page is an error.
    Wgpu,
    /// wgpu that compiles for Vulkan or Metal itself (Burn's features `vulkan` and `metal`): as
    /// [`Wgpu`](Self::Wgpu), but moves what outdated pages hold before the device is full.
    Native,
    /// CUDA and ROCm: as [`Native`](Self::Native), and a refused page is asked for once more after
    /// a cleanup.
    Cuda,
}

impl Driver {
    /// Whether a refused allocation is tried once more after a cleanup.
    pub(super) fn retries(self) -> bool {
        self == Driver::Cuda
    }

    /// Whether a page given back stays taken until the next flush of the driver.
    pub(super) fn defers_frees(self) -> bool {
        self == Driver::Cuda
    }
}

/// What a device allows its pools.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// What drives them.
    pub driver: Driver,
    /// The largest page, and so the largest allocation outside a persistent one.
    pub max_page_size: Bytes,
    /// What every allocation is rounded up to.
    pub alignment: Bytes,
    /// The device's memory; beyond it a page is refused. `None` refuses none.
    pub capacity: Option<Bytes>,
}

impl PoolLimits {
    /// wgpu on a usual adapter: pages up to 2^31 - 4 bytes, 64-byte alignment, no known capacity.
    ///
    /// cubecl asks the adapter for all it has and takes the smaller of
    /// `max_storage_buffer_binding_size` and `max_buffer_size`, and the larger of the two
    /// `min_*_buffer_offset_alignment` (cubecl-wgpu 0.11.3, `runtime.rs:647`). On Vulkan wgpu-hal
    /// 30.0.2 caps the first at 2^31 - 1, rounded down to 4 (`vulkan/adapter.rs:1723`), and raises
    /// the second to at least 32 (`auxil/mod.rs:190`), which many adapters stay above. An adapter
    /// may have less (lavapipe: 128 MiB and 32 bytes): set the fields from its limits where known.
    pub fn wgpu() -> PoolLimits {
        PoolLimits {
            driver: Driver::Wgpu,
            max_page_size: Bytes((1 << 31) - 4),
            alignment: Bytes(64),
            capacity: None,
        }
    }

    /// CUDA on a device of `total` bytes (of all its memory, not of what is free): pages up to a
    /// quarter of it, 512-byte alignment (cubecl-cuda 0.11.3, `runtime.rs:102` and `:133`).
    ///
    /// CUDA pads rows before it asks the pool: a row of more than one element starts at a multiple
    /// of its bytes' next power of two, within 16 and 512 (`PitchedMemoryLayoutPolicy`,
    /// cubecl-server 0.11.3, `allocator.rs`). Whoever knows the shapes rounds their rows first.
    pub fn cuda(total: Bytes) -> PoolLimits {
        PoolLimits {
            driver: Driver::Cuda,
            max_page_size: Bytes(total.0 / 4),
            alignment: Bytes(512),
            capacity: Some(total),
        }
    }

    /// The same on a device of `total` bytes.
    pub fn with_capacity(self, total: Bytes) -> PoolLimits {
        PoolLimits {
            capacity: Some(total),
            ..self
        }
    }

    /// The largest persistent allocation: wgpu must bind it, CUDA only has to hold it.
    pub(super) fn max_persistent(&self) -> Bytes {
        match self.driver {
            Driver::Wgpu | Driver::Native => self.max_page_size,
            Driver::Cuda => self.capacity.unwrap_or(Bytes(MOST)).min(Bytes(MOST)),
        }
    }

    /// The limits where cubecl's arithmetic neither divides by zero nor wraps.
    pub(super) fn sane(self) -> PoolLimits {
        let alignment = self.alignment.0.clamp(1, MOST);
        PoolLimits {
            alignment: Bytes(alignment),
            max_page_size: Bytes(self.max_page_size.0.clamp(alignment, MOST)),
            ..self
        }
    }

    /// What cubecl is told of the device.
    pub(super) fn properties(&self) -> MemoryDeviceProperties {
        let properties = MemoryDeviceProperties::new(self.max_page_size.0, self.alignment.0);
        match (self.driver, self.capacity) {
            (Driver::Native | Driver::Cuda, Some(capacity)) => {
                properties.with_max_memory(capacity.0)
            }
            _ => properties,
        }
    }
}

/// [`PoolLimits::wgpu`].
impl Default for PoolLimits {
    fn default() -> Self {
        PoolLimits::wgpu()
    }
}
