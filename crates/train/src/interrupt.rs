//! Ctrl-C: finish the update, save, leave.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Installs the handler; a second Ctrl-C ends the program at once.
pub fn install() {
    // A program that already has a handler keeps it.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        eprintln!("\ninterrupted: saving after this update (Ctrl-C again to leave at once)");
    });
}

/// Whether Ctrl-C was pressed.
pub fn requested() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
