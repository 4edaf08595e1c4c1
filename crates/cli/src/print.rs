//! Output.

use std::io::Write;

use anyhow::Result;

/// Writes to stdout; a reader who has gone away has read enough.
pub fn out(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
