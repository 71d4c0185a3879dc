//! Checks of the interrupt request level.

use crate::ffi;

/// Returns the current IRQL as an error if it is above `ceiling`. On ARM64 nothing is checked: no document
/// says that the kernel exports `KeGetCurrentIrql`, and a driver with an import that the kernel lacks does
/// not load.
pub fn check(ceiling: u8) -> Result<(), u8> {
    let irql = if cfg!(target_arch = "aarch64") { ffi::PASSIVE_LEVEL } else { ffi::current_irql() };
    if irql > ceiling { Err(irql) } else { Ok(()) }
}
