//! Checks of the interrupt request level.

/// Returns the current IRQL, or `None` in kernel mode on ARM64: no document says that the kernel
/// exports `KeGetCurrentIrql`, and a driver with an import that the kernel lacks does not load.
#[must_use]
pub fn current() -> Option<u8> {
    #[cfg(any(feature = "user-mode", not(target_arch = "aarch64")))]
    return Some(crate::ffi::current_irql());
    #[cfg(all(not(feature = "user-mode"), target_arch = "aarch64"))]
    None
}

/// Returns the current IRQL as an error if it is above `ceiling`. Checks nothing if the IRQL is
/// not known.
pub fn check(ceiling: u8) -> Result<(), u8> {
    current().filter(|irql| *irql > ceiling).map_or(Ok(()), Err)
}
