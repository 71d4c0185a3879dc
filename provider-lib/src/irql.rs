//! Checks of the interrupt request level.

use crate::ffi;

/// Returns the current IRQL as an error if it is above `ceiling`.
pub fn check(ceiling: u8) -> Result<(), u8> {
    let irql = ffi::current_irql();
    if irql > ceiling { Err(irql) } else { Ok(()) }
}
