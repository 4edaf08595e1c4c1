//! The memory that the flags name.

use std::process::ExitCode;

use anyhow::Result;
use leanburn_memory::{Budget, Bytes, Catalogue, Fit};

/// That of a card of the catalogue or of so many bytes, if one is named, for a step on a GPU or not.
pub fn budget(card: Option<&str>, memory: Option<Bytes>, on_gpu: bool) -> Result<Option<Budget>> {
    Ok(match card {
        Some(name) => Some(Budget::card(Catalogue::builtin().find(name)?)),
        None => memory.map(|memory| Budget::of(memory, on_gpu)),
    })
}

/// 1 where there is a budget that it does not fit into for sure.
pub fn exit_code(fit: Option<Fit>) -> ExitCode {
    match fit {
        Some(fit) if !fit.is_sure() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    }
}
