//! What a result was measured on, for reports.

use leanburn_memory::device::{cpu, host};

use crate::Chosen;

/// The version in `Cargo.toml`, which pins it.
const BURN: &str = "0.22.1";

/// Names and values, in the order to be printed; `chosen` adds its device.
pub fn environment(chosen: Option<&Chosen>) -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut facts = vec![
        (
            "date",
            chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
        ),
        ("leanburn", env!("CARGO_PKG_VERSION").to_owned()),
        ("burn", BURN.to_owned()),
        ("profile", profile().to_owned()),
        (
            "system",
            format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ),
        (
            "cpu",
            format!(
                "{}, {cores} cores",
                cpu().unwrap_or_else(|| "unknown".into())
            ),
        ),
        ("memory", host().total.to_string()),
    ];
    if let Some(chosen) = chosen {
        let properties = chosen.properties();
        facts.push(("backend", chosen.backend.to_string()));
        facts.extend(properties.name.map(|name| ("device", name)));
        facts.extend(properties.driver.map(|driver| ("driver", driver)));
    }
    let facts = facts.into_iter();
    facts
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn profile() -> &'static str {
    match cfg!(debug_assertions) {
        true => "dev",
        false => "release",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_burn_is_the_pinned_one() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(manifest.contains(&format!("burn = {{ version = \"={BURN}\"")));
    }
}
