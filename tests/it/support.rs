//! What the topics share: devices, closed-form values, comparisons, and the heap to oneself.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use burn::tensor::{Device, Distribution, Shape, Tensor};

/// Every device that numeric tests run on: flex always; wgpu where `LEANBURN_TEST_WGPU=1` says that
/// an adapter is there, which CI sets after installing a software one.
pub fn devices() -> Vec<Device> {
    let mut devices = vec![Device::flex()];
    #[cfg(feature = "wgpu")]
    if std::env::var_os("LEANBURN_TEST_WGPU").is_some() {
        devices.push(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice));
    }
    devices
}

/// Whether this is the CPU backend.
pub fn is_flex(device: &Device) -> bool {
    *device == Device::flex()
}

/// The heap is one per process, and so are the generators of random numbers: tests that count or draw, and tests that
/// would disturb them, hold this. Each draws the same numbers every time.
pub fn alone() -> MutexGuard<'static, ()> {
    static HEAP: Mutex<()> = Mutex::new(());
    let guard = HEAP.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // The thread of the test before frees its buffers only as it ends.
    std::thread::sleep(Duration::from_millis(5));
    for device in devices() {
        leanburn::seed(&device, 7);
    }
    guard
}

/// Runs on one thread: each worker of a CPU kernel has buffers of its own, so a peak depends on how many
/// happen to be at work.
pub fn on_one_thread<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.expect("a thread").install(f)
}

pub fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::random(Shape::from(shape), Distribution::Normal(0.0, 1.0), device)
}

pub fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter::<f32>().collect()
}

/// Largest absolute difference over the largest magnitude of the reference.
pub fn relative_error(actual: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(actual.len(), expected.len());
    let largest = expected.iter().fold(0.0f32, |max, v| max.max(v.abs()));
    let worst = actual
        .iter()
        .zip(expected)
        .map(|(a, e)| (a - e).abs())
        .fold(0.0, f32::max);
    assert!(actual.iter().all(|v| v.is_finite()), "not finite");
    worst / largest.max(f32::MIN_POSITIVE)
}

/// The integer hash of `benches/peers/closed_form.py`, in [-1, 1).
pub fn closed_form(name: &str, index: u64) -> f64 {
    let phase = name.bytes().map(u64::from).sum::<u64>() % 97;
    let mask = 0xFFFF_FFFF;
    let mut hash = (index.wrapping_mul(2_654_435_761) + phase * 40_503 + 12_345) & mask;
    hash ^= hash >> 15;
    hash = hash.wrapping_mul(2_246_822_519) & mask;
    hash ^= hash >> 13;
    2.0 * (hash as f64 / 4_294_967_296.0) - 1.0
}
