//! `leanburn devices`: what there is to compute on.

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Bytes, Format, Properties};
use leanburn_train::{BackendKind, Found, devices, not_compiled_in};
use serde_json::{Value, json};

use crate::print::out;

/// Every device is opened and asked; those of a backend that is compiled in and finds none are not listed.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "What stands in the first column is what --backend takes. A backend that is not compiled in needs \
                  another build, such as cargo build --release --features cuda; docs/gpu.md says how."
)]
pub struct Args {
    /// Print one JSON object on stdout.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Result<ExitCode> {
    let found = devices(BackendKind::Auto);
    let missing = not_compiled_in();
    out(&match args.json {
        true => format!("{}\n", json(&found, &missing)),
        false => text(&found, &missing),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn text(found: &[Found], missing: &[BackendKind]) -> String {
    let mut text = String::new();
    for device in found {
        let backend = device.backend.to_string();
        match &device.properties {
            Ok(properties) => text += &entry(&backend, device, properties),
            Err(cause) => {
                text += &format!("{backend:<10} {}\n  does not open: {cause}\n", device.what);
            }
        }
    }
    for kind in without_device(found, missing) {
        text += &format!("{:<10} compiled in, and no device found\n", kind.name());
    }
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|kind| kind.name()).collect();
        text += &format!("not compiled in: {}\n", names.join(", "));
    }
    text
}

fn entry(backend: &str, device: &Found, properties: &Properties) -> String {
    let name = properties.name.as_deref().unwrap_or(device.what);
    let mut text = format!("{backend:<10} {name}");
    if properties.name.is_some() && device.is_software {
        text += &format!(" ({})", device.what);
    }
    text.push('\n');
    let mut line = |label: &str, value: String| text += &format!("  {label:<20} {value}\n");
    if let Some(driver) = &properties.driver {
        line("driver", driver.clone());
    }
    line("memory", memory(device, properties));
    let largest = properties.largest.map(|bytes| bytes.to_string());
    line("largest allocation", largest.unwrap_or("the memory".into()));
    let of = |wanted: fn(&Format) -> bool| {
        let names = properties.formats.iter().filter(|format| wanted(format));
        names
            .map(|format| format.name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    line("arithmetic", of(|format| format.arithmetic));
    for (label, names) in [
        ("matrix units", of(|format| format.tensor_cores)),
        ("storage only", of(|format| !format.arithmetic)),
    ] {
        if !names.is_empty() {
            line(label, names);
        }
    }
    line("collectives", device.collectives.unwrap_or("none").into());
    text
}

fn memory(device: &Found, properties: &Properties) -> String {
    let Some(space) = properties.space else {
        return "the driver does not say".into();
    };
    let whose = match device.is_software {
        true => " of the machine",
        false => "",
    };
    match space.free {
        Some(free) => format!("{}{whose}, {free} free", space.total),
        None => format!("{}{whose}", space.total),
    }
}

/// Backends that are compiled in and found no device.
fn without_device(found: &[Found], missing: &[BackendKind]) -> Vec<BackendKind> {
    let kinds = BackendKind::ALL.iter().copied();
    let absent = kinds.filter(|kind| {
        let has = found.iter().any(|device| device.backend.kind == *kind);
        *kind != BackendKind::Auto && !has && !missing.contains(kind)
    });
    absent.collect()
}

fn json(found: &[Found], missing: &[BackendKind]) -> Value {
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
    let device = |device: &Found| {
        let properties = device.properties.as_ref();
        let mut object = json!({
            "backend": device.backend.to_string(),
            "kind": device.what,
            "software": device.is_software,
            "collectives": device.collectives,
            "error": properties.err(),
        });
        if let Ok(of) = properties {
            let format = |format: &Format| {
                let Format {
                    name,
                    arithmetic,
                    tensor_cores,
                } = format;
                json!({ "name": name, "arithmetic": arithmetic, "tensor_cores": tensor_cores })
            };
            object["name"] = json!(of.name);
            object["driver"] = json!(of.driver);
            object["memory"] = json!(of.space.map(|space| space.total.0));
            object["free"] = json!(bytes(of.space.and_then(|space| space.free)));
            object["largest_allocation"] = json!(bytes(of.largest));
            object["dtypes"] = of.formats.iter().map(format).collect();
        }
        object
    };
    let names = |kinds: &[BackendKind]| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>();
    json!({
        "devices": found.iter().map(device).collect::<Vec<_>>(),
        "without_device": names(&without_device(found, missing)),
        "not_compiled_in": names(missing),
    })
}
