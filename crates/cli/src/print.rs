//! Output.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

/// Writes to stdout; a reader who has gone away has read enough.
pub fn out(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes a file, and says so.
pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
