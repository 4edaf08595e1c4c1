//! The memory that the flags name.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use leanburn_memory::{Budget, Bytes, Catalogue, Fit, Gpu};

/// That of a card or of so many bytes, if either is given, for a step on a GPU or not.
pub fn budget(card: Option<&Gpu>, memory: Option<Bytes>, on_gpu: bool) -> Option<Budget> {
    match card {
        Some(card) => Some(Budget::card(card)),
        None => memory.map(|memory| Budget::of(memory, on_gpu)),
    }
}

/// The card that a flag names.
pub fn card<'a>(catalogue: &'a Catalogue, name: Option<&str>) -> Result<Option<&'a Gpu>> {
    Ok(name.map(|name| catalogue.find(name)).transpose()?)
}

/// The GPUs of a file, or those that come with leanburn.
pub fn catalogue(file: Option<&Path>) -> Result<Catalogue> {
    let Some(path) = file else {
        return Ok(Catalogue::builtin());
    };
    let named = || path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(named)?;
    Catalogue::parse(&text).with_context(named)
}

/// 1 where there is a budget that it does not fit into for sure.
pub fn exit_code(fit: Option<Fit>) -> ExitCode {
    match fit {
        Some(fit) if !fit.is_sure() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
