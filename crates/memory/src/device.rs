//! What a device and its driver say of themselves.

mod space;

use burn::backend::{Backend, DTypeUsage, Dispatch};
use burn::tensor::{DType, Device};

use crate::{Bytes, nvidia};

pub use space::{Space, cpu, host};

/// A number format on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Short name, such as `bf16`.
    pub name: &'static str,
    /// Whether tensors of it can be computed with, rather than only stored.
    pub arithmetic: bool,
    /// Whether matrix units take it.
    pub tensor_cores: bool,
}

/// A device, described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// As the device names itself.
    pub name: Option<String>,
    /// Version of the driver, where it says one.
    pub driver: Option<String>,
    /// Memory of the card, or of the machine for a device that computes in it.
    pub space: Option<Space>,
    /// The largest single allocation; `None` where only the memory itself is a limit.
    pub largest: Option<Bytes>,
    /// Number formats that can at least be stored.
    pub formats: Vec<Format>,
}

const FORMATS: [(&str, DType); 8] = [
    ("f64", DType::F64),
    ("f32", DType::F32),
    ("f16", DType::F16),
    ("bf16", DType::BF16),
    ("i64", DType::I64),
    ("i32", DType::I32),
    ("i8", DType::I8),
    ("u8", DType::U8),
];

impl Properties {
    /// Asks a device, which opens it. `is_software` says that it computes on the CPU.
    ///
    /// # Panics
    ///
    /// Where a GPU's driver lists the device and cannot open it.
    pub fn of(device: &Device, is_software: bool) -> Self {
        let told = told(device);
        let address = told.pci_address.as_deref();
        let (driver, space) = match address.and_then(nvidia::card) {
            Some(card) => (card.driver, card.space),
            None => (None, address.and_then(space::amd)),
        };
        let stated = told.memory.map(|total| Space { total, free: None });
        Self {
            name: told.name.or_else(|| is_software.then(cpu).flatten()),
            driver,
            space: match is_software {
                true => Some(host()),
                false => space.or(stated),
            },
            largest: told.largest,
            formats: formats(device),
        }
    }
}

fn formats(device: &Device) -> Vec<Format> {
    let format = |(name, dtype): &(&'static str, DType)| {
        let usage = Dispatch::dtype_usage(device.as_dispatch(), *dtype);
        usage.contains(DTypeUsage::Storage).then_some(Format {
            name,
            arithmetic: usage.contains(DTypeUsage::Arithmetic),
            tensor_cores: usage.contains(DTypeUsage::Accelerated),
        })
    };
    FORMATS.iter().filter_map(format).collect()
}

/// What the runtime tells.
#[derive(Default)]
struct Told {
    name: Option<String>,
    pci_address: Option<String>,
    memory: Option<Bytes>,
    largest: Option<Bytes>,
}

#[cfg(feature = "pool")]
fn told(device: &Device) -> Told {
    use burn::backend::DispatchDevice;
    let DispatchDevice::Cube(cube) = device.as_dispatch() else {
        return Told::default();
    };
    let client = cube.client();
    let properties = client.properties();
    let physical = properties.identity.physical.as_ref();
    Told {
        name: Some(properties.identity.name.clone()),
        pci_address: physical
            .and_then(|card| card.pci_address)
            .map(|address| address.to_string()),
        memory: properties.memory.max_memory().map(Bytes),
        largest: Some(Bytes(properties.memory.max_page_size)),
    }
}

#[cfg(not(feature = "pool"))]
fn told(_: &Device) -> Told {
    Told::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_computes_in_every_precision_and_in_the_machines_memory() {
        let cpu = Properties::of(&Device::flex(), true);
        for name in ["f32", "f16", "bf16"] {
            let format = cpu.formats.iter().find(|format| format.name == name);
            assert!(format.unwrap().arithmetic, "{name}");
        }
        assert_eq!(cpu.largest, None);
        let space = cpu.space.unwrap();
        assert!(space.total > Bytes(1 << 28), "{}", space.total);
        assert!(space.free.unwrap() <= space.total);
    }
}
