//! The memory of one device, read where it can be.

use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::Device;

use crate::{Bytes, heap, nvidia};

/// Reads the memory of one device. A meter that cannot know says `None`, never 0.
///
/// | device | source | peak |
/// |---|---|---|
/// | flex, ndarray | the [`CountingAllocator`](crate::CountingAllocator), where the program has it | exact |
/// | wgpu, vulkan, metal, cuda, rocm | the device's pool | the highest [`sample`](Self::sample) |
/// | any other | not reported | |
///
/// Clones share the device and the running peak. The heap's numbers are those of the whole process.
#[derive(Clone)]
pub struct Meter(Arc<Source>);

enum Source {
    Heap,
    Pool {
        device: Device,
        peak: Mutex<Option<Bytes>>,
    },
    NotReported,
}

impl Meter {
    /// The meter of `device`. Opens the device, where that was not done yet.
    pub fn new(device: &Device) -> Meter {
        Meter(Arc::new(Source::of(device, heap::installed())))
    }

    /// Where the numbers come from: `counting allocator`, `device pool` or `not reported`.
    pub fn source(&self) -> &'static str {
        match &*self.0 {
            Source::Heap => "counting allocator",
            Source::Pool { .. } => "device pool",
            Source::NotReported => "not reported",
        }
    }

    /// Whether [`peak`](Self::peak) saw every byte, rather than only those alive at a sample.
    pub fn is_exact_peak(&self) -> bool {
        matches!(*self.0, Source::Heap)
    }

    /// Waits for the device's pending work, so that what it frees is freed; the heap needs none.
    pub fn sync(&self) {
        if let Source::Pool { device, .. } = &*self.0 {
            // A device that failed says so at the next operation, where there is a caller to tell.
            let _ = device.sync();
        }
    }

    /// Bytes in use now, without padding and without what a pool only reserves.
    /// For a pool, call [`sync`](Self::sync) first.
    pub fn current(&self) -> Option<Bytes> {
        match &*self.0 {
            Source::Heap => Some(Bytes(heap::current())),
            Source::Pool { device, .. } => in_use(device),
            Source::NotReported => None,
        }
    }

    /// Lets a pool's running peak see this moment (waits for the device); the heap needs none.
    pub fn sample(&self) {
        if let Source::Pool { device, peak } = &*self.0 {
            self.sync();
            let now = in_use(device);
            let mut peak = peak.lock().unwrap_or_else(PoisonError::into_inner);
            *peak = (*peak).max(now);
        }
    }

    /// The most bytes in use at once since the last [`reset_peak`](Self::reset_peak); for a pool at
    /// the samples since then, and `None` before the first.
    pub fn peak(&self) -> Option<Bytes> {
        match &*self.0 {
            Source::Heap => Some(Bytes(heap::peak())),
            Source::Pool { peak, .. } => *peak.lock().unwrap_or_else(PoisonError::into_inner),
            Source::NotReported => None,
        }
    }

    /// Starts a new peak at the bytes in use now (waits for a pool's device).
    pub fn reset_peak(&self) {
        match &*self.0 {
            Source::Heap => {
                heap::reset_peak();
            }
            Source::Pool { device, peak } => {
                self.sync();
                *peak.lock().unwrap_or_else(PoisonError::into_inner) = in_use(device);
            }
            Source::NotReported => {}
        }
    }

    /// What a pool holds beyond the bytes in use: padding, and pages kept for reuse.
    /// `None` for the heap, which does not tell.
    pub fn allocator_overhead(&self) -> Option<Bytes> {
        match &*self.0 {
            // padding + (reserved - in use - padding)
            Source::Pool { device, .. } => device
                .memory_pool_usage()
                .map(|usage| Bytes(usage.bytes_reserved.saturating_sub(usage.bytes_in_use))),
            Source::Heap | Source::NotReported => None,
        }
    }

    /// Gives back the pages of a pool in which nothing is in use, and says how many bytes those were; `None` for
    /// the heap, whose allocator decides by itself. Waits for the device.
    pub fn clean_up(&self) -> Option<Bytes> {
        let Source::Pool { device, .. } = &*self.0 else {
            return None;
        };
        self.sync();
        let before = self.reserved()?;
        device.memory_cleanup();
        self.sync();
        Some(before.saturating_sub(self.reserved()?))
    }

    /// What a pool holds, in use or not; `None` for the heap, which does not tell.
    pub fn reserved(&self) -> Option<Bytes> {
        match &*self.0 {
            Source::Pool { device, .. } => device
                .memory_pool_usage()
                .map(|usage| Bytes(usage.bytes_reserved)),
            Source::Heap | Source::NotReported => None,
        }
    }

    /// What the driver says this process holds on NVIDIA GPUs, all of them together, device
    /// context included. `None` unless compiled with the feature `cuda`, and where the driver
    /// does not tell.
    pub fn process(&self) -> Option<Bytes> {
        match &*self.0 {
            Source::Pool { .. } => nvidia::gpu_bytes(),
            Source::Heap | Source::NotReported => None,
        }
    }
}

impl Source {
    fn of(device: &Device, heap_is_counted: bool) -> Source {
        if in_use(device).is_some() {
            return Source::Pool {
                device: device.clone(),
                peak: Mutex::new(None),
            };
        }
        match heap_is_counted && lives_on_the_heap(device) {
            true => Source::Heap,
            false => Source::NotReported,
        }
    }
}

fn in_use(device: &Device) -> Option<Bytes> {
    device
        .memory_pool_usage()
        .map(|usage| Bytes(usage.bytes_in_use))
}

/// Whether the tensors of `device` are Rust allocations.
fn lives_on_the_heap(device: &Device) -> bool {
    // Burn's variants exist only with its own features, so their printed names are asked instead.
    let name = format!("{device:?}");
    name.contains("Flex(") || name.contains("NdArray(")
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Tensor;

    #[test]
    fn flex_reads_the_counted_heap() {
        let _turn = heap::alone();
        for device in [Device::flex(), Device::flex().autodiff()] {
            let meter = Meter::new(&device);
            assert_eq!(meter.source(), "counting allocator");
            assert!(meter.is_exact_peak());
            meter.reset_peak();
            let before = meter.current().unwrap();

            let zeros = Tensor::<1>::zeros([32 << 20], &device);
            let held = meter.current().unwrap().saturating_sub(before);
            assert!(held.0.abs_diff(128 << 20) < 16 << 20, "{held}");
            drop(zeros);
            assert!(
                meter.peak().unwrap()
                    >= meter
                        .current()
                        .unwrap()
                        .checked_add(Bytes(100 << 20))
                        .unwrap()
            );
            assert_eq!(meter.allocator_overhead(), None);
            assert_eq!(meter.process(), None);
        }
    }

    #[test]
    fn flex_without_the_allocator_reports_nothing() {
        let meter = Meter(Arc::new(Source::of(&Device::flex(), false)));
        meter.sync();
        meter.sample();
        meter.reset_peak();
        assert_eq!(meter.source(), "not reported");
        assert!(!meter.is_exact_peak());
        assert_eq!(meter.current(), None);
        assert_eq!(meter.peak(), None);
        assert_eq!(meter.allocator_overhead(), None);
        assert_eq!(meter.process(), None);
    }

    #[test]
    fn a_meter_goes_to_other_threads() {
        fn sendable<T: Clone + Send + Sync>(_: &T) {}
        sendable(&Meter::new(&Device::flex()));
    }
}
