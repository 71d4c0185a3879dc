//! A stand-in for Microsoft's wdk-sys, for machines without the WDK.
//!
//! The crate contains the names, types and values of the published crate's generated bindings for
//! KMDF 1.15 to 1.33, so that drivers, wdk, wdk-alloc, wdk-panic and wdk-macros compile unchanged
//! with it. The build script generates them from data about Microsoft's headers, and tests compare
//! the two. Imports come directly from the modules that export them, without an import library. The
//! entry code that the WDK links from `WdfDriverEntry.lib` is in `driver_entry`.

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "the sizes of the WDK's structures fit the fields that contain them"
)]

#[macro_use]
mod bindings;
// The macro `table`, which assigns the symbol of the pointer to the framework's function table.
include!(concat!(env!("OUT_DIR"), "/table.rs"));

#[cfg(all(driver_model__driver_type = "KMDF", not(feature = "suppress-wdk-linking")))]
pub mod driver_entry;
#[cfg(all(driver_model__driver_type = "KMDF", not(feature = "suppress-wdk-linking")))]
mod function_table;
// Documenting every item would repeat the WDK's headers.
#[doc(hidden)]
mod generated;
#[cfg(all(target_os = "windows", not(feature = "suppress-wdk-linking")))]
mod memory;
#[cfg(all(target_os = "windows", target_env = "msvc", not(feature = "suppress-wdk-linking")))]
mod stack_probe;
mod support;
#[cfg(feature = "test-stubs")]
pub mod test_stubs;
#[cfg(all(target_os = "windows", not(feature = "suppress-wdk-linking")))]
mod user_mode;
#[cfg(driver_model__driver_type = "KMDF")]
mod version;
#[cfg(driver_model__driver_type = "KMDF")]
pub mod wdf;

#[doc(hidden)]
pub use wdk_macros as __proc_macros;

#[cfg(all(driver_model__driver_type = "KMDF", not(feature = "suppress-wdk-linking")))]
pub use crate::driver_entry::globals::*;
pub use crate::generated::{constants::*, functions::*, types::*};

#[cfg(driver_model__driver_type = "KMDF")]
pub use wdk_sys_macros::call_unsafe_wdf_function_binding;

/// Proves to the tests that the layouts were compared with the headers.
#[cfg(feature = "check-layouts")]
#[doc(hidden)]
pub const LAYOUTS_ARE_CHECKED: () = ();

/// Returns true if a status is a success or informational (`NT_SUCCESS` in ntdef.h).
#[must_use]
#[allow(non_snake_case, reason = "the name is the macro's in the WDK's headers")]
pub const fn NT_SUCCESS(status: NTSTATUS) -> bool {
    status >= 0
}

/// Returns true if a status is informational (`NT_INFORMATION` in ntdef.h).
#[must_use]
#[allow(non_snake_case, reason = "the name is the macro's in the WDK's headers")]
pub const fn NT_INFORMATION(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 1
}

/// Returns true if a status is a warning (`NT_WARNING` in ntdef.h).
#[must_use]
#[allow(non_snake_case, reason = "the name is the macro's in the WDK's headers")]
pub const fn NT_WARNING(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 2
}

/// Returns true if a status is an error (`NT_ERROR` in ntdef.h).
#[must_use]
#[allow(non_snake_case, reason = "the name is the macro's in the WDK's headers")]
pub const fn NT_ERROR(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 3
}

/// Asserts, in debug builds, that the code runs at an IRQL at which paged memory can be accessed
/// (`PAGED_CODE` in wdm.h).
#[macro_export]
#[allow(non_snake_case, reason = "the name is the macro's in the WDK's headers")]
macro_rules! PAGED_CODE {
    () => {
        // SAFETY: the routine may be called at any IRQL and has no arguments.
        debug_assert!(unsafe { $crate::ntddk::KeGetCurrentIrql() } <= $crate::APC_LEVEL as u8);
    };
}

/// The symbol that marks floating-point code for Microsoft's linker. The compiler references it
/// wherever a float occurs, even as a bit pattern.
// SAFETY: no other symbol has this name, and nothing reads it.
#[unsafe(no_mangle)]
pub static _fltused: () = ();

/// A C++ exception handler, referenced by precompiled parts of `core`, for frames of older code. It
/// is never called if panics abort. Each of the three handlers returns a different value, so that
/// identical code folding cannot merge them.
// SAFETY: no other symbol has this name, and nothing calls it.
#[cfg(panic = "abort")]
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is the linker's")]
pub const extern "system" fn __CxxFrameHandler3() -> i32 {
    0
}

/// The handler for frames of newer code.
// SAFETY: as above.
#[cfg(panic = "abort")]
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is the linker's")]
pub const extern "system" fn __CxxFrameHandler4() -> i32 {
    1
}

/// The handler for frames with a security cookie.
// SAFETY: as above.
#[cfg(panic = "abort")]
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is the linker's")]
pub const extern "system" fn __GSHandlerCheck_EH4() -> i32 {
    2
}
