//! Handles Ctrl+C and termination signals, so that no virtual machine keeps running.

use std::sync::{
    Once,
    atomic::{AtomicBool, Ordering},
};

use crate::error::{Error, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl+C, SIGTERM and SIGHUP stop this process's virtual machines before the process ends.
pub fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // If the program already has a handler, that handler stays in effect; QEMU ends with the
        // process anyway.
        let _ = ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed));
    });
}

/// Fails if the user has interrupted the command.
///
/// # Errors
///
/// Fails with [`Error::Interrupted`].
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(())
}
