//! Checks of the interrupt request level.

/// Returns the current IRQL as an error if it is above `ceiling`. Checks nothing on ARM64: no
/// document says that the kernel exports `KeGetCurrentIrql`, and a driver with an import that the
/// kernel lacks does not load.
pub fn check(ceiling: u8) -> Result<(), u8> {
    #[cfg(not(target_arch = "aarch64"))]
    let irql = crate::ffi::current_irql();
    #[cfg(target_arch = "aarch64")]
    let irql = crate::ffi::PASSIVE_LEVEL;
    if irql > ceiling { Err(irql) } else { Ok(()) }
}
