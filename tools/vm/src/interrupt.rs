//! Ctrl+C and requests to end, which must not leave a machine behind.

use std::sync::{
    Once,
    atomic::{AtomicBool, Ordering},
};

use crate::error::{Error, Result};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Makes Ctrl+C, SIGTERM and SIGHUP end the machines of this process before the process.
pub fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Where a program has its own handler, that one decides; QEMU ends with the process anyway.
        let _ = ctrlc::set_handler(|| ASKED.store(true, Ordering::Relaxed));
    });
}

/// Fails if the user asked for the end.
///
/// # Errors
///
/// [`Error::Interrupted`].
pub fn check() -> Result<()> {
    if ASKED.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    Ok(())
}
