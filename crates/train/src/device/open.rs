//! Opening a device so that a refusal is an error: left to the first operation, it would be a panic.

use super::found::Place;

/// Opens it, or says why the driver did not.
#[cfg(feature = "wgpu")]
pub(super) fn open(place: &Place) -> Result<(), String> {
    match &place.adapter {
        Some(adapter) => wgpu::open(adapter),
        None => Ok(()),
    }
}

/// The driver of an opened adapter, with its version.
#[cfg(feature = "wgpu")]
pub(super) fn driver(place: &Place) -> Option<String> {
    wgpu::driver(place.adapter.as_ref()?)
}

#[cfg(not(feature = "wgpu"))]
pub(super) fn open(_: &Place) -> Result<(), String> {
    Ok(())
}

#[cfg(not(feature = "wgpu"))]
pub(super) fn driver(_: &Place) -> Option<String> {
    None
}

#[cfg(feature = "wgpu")]
mod wgpu {
    use std::sync::{Mutex, PoisonError};

    use burn::tensor::wgpu::{WgpuBackend, WgpuInitError, wgpu::AdapterInfo};
    use burn::tensor::{Device, DeviceKind};

    type Adapter = (DeviceKind, WgpuBackend);

    /// A device can be opened once; what its adapter said then is kept.
    static OPEN: Mutex<Vec<(Adapter, Option<AdapterInfo>)>> = Mutex::new(Vec::new());

    pub fn open(adapter: &Adapter) -> Result<(), String> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if open.iter().any(|(one, _)| one == adapter) {
            return Ok(());
        }
        let options = Device::wgpu_options().device_kind(adapter.0.clone());
        let info = match options.graphics_api(adapter.1).init_with_setup() {
            Ok((_, setup)) => Some(setup.adapter.get_info()),
            // Somebody used it already, so it does open.
            Err(WgpuInitError::Registration { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        open.push((adapter.clone(), info));
        Ok(())
    }

    pub fn driver(adapter: &Adapter) -> Option<String> {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, info) = open.iter().find(|(one, _)| one == adapter)?;
        let info = info.as_ref()?;
        Some(
            format!("{} {}", info.driver, info.driver_info)
                .trim()
                .to_owned(),
        )
        .filter(|driver| !driver.is_empty())
    }
}
