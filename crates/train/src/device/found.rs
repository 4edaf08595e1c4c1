//! The devices that there are.

use burn::tensor::Device;
#[cfg(any(feature = "wgpu", feature = "cuda", feature = "rocm"))]
use burn::tensor::DeviceType;
#[cfg(feature = "wgpu")]
use burn::tensor::{DeviceKind, wgpu::WgpuBackend};
use leanburn_memory::Properties;

use super::open;
use crate::{Backend, BackendKind, Index};

/// A device that is there, not opened yet.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub device: Device,
    /// In a few words, such as `a discrete GPU`.
    pub what: &'static str,
    pub is_software: bool,
    #[cfg(feature = "wgpu")]
    pub adapter: Option<(DeviceKind, WgpuBackend)>,
}

/// A device of `leanburn devices`.
#[derive(Clone, Debug)]
pub struct Found {
    /// What `--backend` takes for it.
    pub backend: Backend,
    /// In a few words, such as `a discrete GPU`.
    pub what: &'static str,
    /// Computes on the CPU: flex, or a software adapter.
    pub is_software: bool,
    /// What it says of itself, or why it did not open.
    pub properties: Result<Properties, String>,
    /// What lets several of them train together.
    pub collectives: Option<&'static str>,
}

/// Opens and asks every device of a backend, or of all of them for `auto`.
pub fn devices(kind: BackendKind) -> Vec<Found> {
    let kinds = BackendKind::ALL.iter().copied();
    let kinds = kinds.filter(|one| kind == BackendKind::Auto || kind == *one);
    let found = kinds.flat_map(|kind| {
        let places = present(kind).unwrap_or_default();
        let places = places.into_iter().enumerate();
        places.map(move |(n, place)| describe(kind, n, &place))
    });
    found.collect()
}

fn describe(kind: BackendKind, n: usize, place: &Place) -> Found {
    let index = match (kind, place.is_software) {
        (BackendKind::Flex, _) => Index::First,
        (_, true) => Index::Cpu,
        (_, false) => Index::Nth(n),
    };
    let properties = open::open(place).map(|()| {
        let mut properties = Properties::of(&place.device, place.is_software);
        properties.driver = properties.driver.or_else(|| open::driver(place));
        properties
    });
    Found {
        backend: Backend { kind, index },
        what: place.what,
        is_software: place.is_software,
        properties,
        // Burn's only transport between devices.
        collectives: (kind == BackendKind::Cuda).then_some("NCCL"),
    }
}

/// Backends that this program was built without.
pub fn not_compiled_in() -> Vec<BackendKind> {
    let compiled = |kind: &BackendKind| match kind {
        BackendKind::Auto => true,
        BackendKind::Flex => cfg!(feature = "flex"),
        BackendKind::Wgpu => cfg!(feature = "wgpu"),
        BackendKind::Vulkan => cfg!(feature = "vulkan"),
        BackendKind::Metal => cfg!(feature = "metal"),
        BackendKind::Cuda => cfg!(feature = "cuda"),
        BackendKind::Rocm => cfg!(feature = "rocm"),
    };
    let kinds = BackendKind::ALL.iter().copied();
    kinds.filter(|kind| !compiled(kind)).collect()
}

/// The devices of a backend, GPUs first; `None` where it is not compiled in.
pub(super) fn present(kind: BackendKind) -> Option<Vec<Place>> {
    match kind {
        #[cfg(feature = "flex")]
        BackendKind::Flex => Some(vec![Place {
            device: Device::flex(),
            what: "the CPU",
            is_software: true,
            #[cfg(feature = "wgpu")]
            adapter: None,
        }]),
        #[cfg(feature = "wgpu")]
        BackendKind::Wgpu => Some(adapters(DeviceType::Wgpu, WgpuBackend::Auto)),
        #[cfg(feature = "vulkan")]
        BackendKind::Vulkan => Some(adapters(DeviceType::Vulkan, WgpuBackend::Vulkan)),
        #[cfg(feature = "metal")]
        BackendKind::Metal => Some(adapters(DeviceType::Metal, WgpuBackend::Metal)),
        #[cfg(feature = "cuda")]
        BackendKind::Cuda => Some(cards(DeviceType::Cuda, "an NVIDIA GPU")),
        #[cfg(feature = "rocm")]
        BackendKind::Rocm => Some(cards(DeviceType::Rocm, "an AMD GPU")),
        _ => None,
    }
}

/// The list is empty without a driver.
#[cfg(any(feature = "cuda", feature = "rocm"))]
fn cards(of: DeviceType, what: &'static str) -> Vec<Place> {
    let devices = Device::enumerate(of).into_vec().into_iter();
    let place = |device| Place {
        device,
        what,
        is_software: false,
        #[cfg(feature = "wgpu")]
        adapter: None,
    };
    devices.map(place).collect()
}

/// wgpu counts its adapters kind by kind.
#[cfg(feature = "wgpu")]
fn adapters(of: DeviceType, api: WgpuBackend) -> Vec<Place> {
    let present = Device::enumerate(of).into_vec();
    let count = present.len();
    let named = |make: fn(usize) -> DeviceKind, what| (0..count).map(move |n| (make(n), what));
    let gpus = named(DeviceKind::DiscreteGpu, "a discrete GPU")
        .chain(named(DeviceKind::IntegratedGpu, "an integrated GPU"))
        .chain(named(DeviceKind::VirtualGpu, "a virtual GPU"));
    let all = gpus.chain([(DeviceKind::Cpu, "a software adapter")]);
    let place = |(kind, what): (DeviceKind, &'static str)| Place {
        device: device(api, kind.clone()),
        what,
        is_software: kind == DeviceKind::Cpu,
        adapter: Some((kind, api)),
    };
    let places = all.map(place);
    places
        .filter(|place| present.contains(&place.device))
        .collect()
}

#[cfg(feature = "wgpu")]
fn device(api: WgpuBackend, kind: DeviceKind) -> Device {
    match api {
        #[cfg(feature = "vulkan")]
        WgpuBackend::Vulkan => Device::vulkan(kind),
        #[cfg(feature = "metal")]
        WgpuBackend::Metal => Device::metal(kind),
        _ => Device::wgpu(kind),
    }
}
