//! Handles Ctrl+C and termination signals, which must not leave a virtual machine running.

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
        // If the program has its own handler, that handler stays in effect; QEMU ends with the
        // process anyway.
        let _ = ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed));
    });
}

/// Fails if the user has interrupted the command.
///
/// # Errors
///
/// Returns [`Error::Interrupted`].
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(())
}
