//! A file that says how far a step came, for whoever finds the process dead.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use super::Mark;
use crate::Bytes;

static TRAIL: OnceLock<Mutex<File>> = OnceLock::new();

/// From now on every mark of a recorded step is a line of this file, written before the step goes on. The first
/// call decides.
pub fn follow(path: &Path) -> io::Result<()> {
    let _ = TRAIL.set(Mutex::new(File::create(path)?));
    Ok(())
}

/// Whether marks are written down.
pub fn is_followed() -> bool {
    TRAIL.get().is_some()
}

pub(super) fn note(mark: Mark, live: Bytes) {
    if let Some(Ok(mut file)) = TRAIL.get().map(Mutex::lock) {
        // A step must not fail for its trail.
        let _ = writeln!(file, "{mark}, {live} in use");
    }
}
