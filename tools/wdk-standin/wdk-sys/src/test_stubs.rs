//! Definitions of symbols that a driver's image or the WDK libraries define, so that the tests of
//! libraries that use wdk-sys can be linked. Nothing calls them.

#![allow(non_upper_case_globals, reason = "the names are defined by the WDK's entry library")]

use core::ptr;

use crate::{NTSTATUS, PCUNICODE_STRING, PDRIVER_OBJECT, PWDF_DRIVER_GLOBALS, ULONG, WDFFUNC};

/// A driver's entry point.
///
/// # Safety
///
/// This function does nothing.
// SAFETY: a test that enables the feature defines no other symbol with this name.
#[unsafe(export_name = "DriverEntry")]
pub const unsafe extern "system" fn driver_entry_stub(
    _driver: PDRIVER_OBJECT,
    _registry_path: PCUNICODE_STRING,
) -> NTSTATUS {
    0
}

/// The number of the framework's functions.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub static mut WdfFunctionCount: ULONG = 0;

/// The framework's globals for the driver.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub static mut WdfDriverGlobals: PWDF_DRIVER_GLOBALS = ptr::null_mut();

table! {
    /// The framework's function table.
    pub static mut WdfFunctions: *const WDFFUNC = ptr::null();
}
