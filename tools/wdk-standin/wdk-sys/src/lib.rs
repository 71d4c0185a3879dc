//! A stand-in for Microsoft's wdk-sys, for machines without the WDK.
//!
//! The crate contains those names, types and values of the published crate's generated bindings
//! that a KMDF 1.31 driver without hardware needs, so that wdk, wdk-alloc, wdk-panic and wdk-macros
//! compile unchanged with it. Tests compare it with data that were extracted from Microsoft's
//! headers. Imports come directly from ntoskrnl.exe and WDFLDR.SYS, without an import library. The
//! entry code that the WDK links from `WdfDriverEntry.lib` is in [`driver_entry`].

#![no_std]
#![allow(
    clippy::cast_possible_truncation,
    reason = "sizes of the WDK's structures fit the fields that hold them"
)]

mod constants;
pub mod driver_entry;
#[cfg(target_os = "windows")]
mod memory;
pub mod ntddk;
#[cfg(all(target_os = "windows", target_env = "msvc"))]
mod stack_probe;
mod types;
pub mod wdf;

#[doc(hidden)]
pub use wdk_macros as __proc_macros;

pub use crate::{constants::*, driver_entry::globals::*, types::*};

pub use wdk_sys_macros::call_unsafe_wdf_function_binding;

/// Returns true if a status is a success or informational (`NT_SUCCESS` of ntdef.h).
#[must_use]
#[allow(
    non_snake_case,
    reason = "the name is the macro's in the WDK's headers"
)]
pub const fn NT_SUCCESS(status: NTSTATUS) -> bool {
    status >= 0
}

/// Returns true if a status is informational (`NT_INFORMATION` of ntdef.h).
#[must_use]
#[allow(
    non_snake_case,
    reason = "the name is the macro's in the WDK's headers"
)]
pub const fn NT_INFORMATION(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 1
}

/// Returns true if a status is a warning (`NT_WARNING` of ntdef.h).
#[must_use]
#[allow(
    non_snake_case,
    reason = "the name is the macro's in the WDK's headers"
)]
pub const fn NT_WARNING(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 2
}

/// Returns true if a status is an error (`NT_ERROR` of ntdef.h).
#[must_use]
#[allow(
    non_snake_case,
    reason = "the name is the macro's in the WDK's headers"
)]
pub const fn NT_ERROR(status: NTSTATUS) -> bool {
    status.cast_unsigned() >> 30 == 3
}

/// Asserts, in debug builds, that the code runs at an IRQL at which paged memory
/// may be accessed (`PAGED_CODE` of wdm.h).
#[macro_export]
#[allow(
    non_snake_case,
    reason = "the name is the macro's in the WDK's headers"
)]
macro_rules! PAGED_CODE {
    () => {
        // SAFETY: the routine may be called at any IRQL and has no arguments.
        debug_assert!(unsafe { $crate::ntddk::KeGetCurrentIrql() } <= $crate::APC_LEVEL as u8);
    };
}

/// The symbol by which Microsoft's linker finds floating-point code. The compiler references it
/// wherever a float occurs, even as a bit pattern.
// SAFETY: no other symbol has this name, and nothing reads it.
#[unsafe(no_mangle)]
pub static _fltused: i32 = 0;

/// C++ exception handlers that precompiled parts of `core` reference. They are never called if
/// panics abort. Each returns a different value, so that identical code folding does not merge
/// them.
#[cfg(panic = "abort")]
pub mod unwind_stubs {
    #![allow(non_snake_case, reason = "names are the linker's")]

    /// The frame handler of older code.
    // SAFETY: no other symbol has this name, and nothing calls it.
    #[unsafe(no_mangle)]
    pub const extern "system" fn __CxxFrameHandler3() -> i32 {
        0
    }

    /// The frame handler of newer code.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    pub const extern "system" fn __CxxFrameHandler4() -> i32 {
        1
    }

    /// The handler of frames with a security cookie.
    // SAFETY: as above.
    #[unsafe(no_mangle)]
    pub const extern "system" fn __GSHandlerCheck_EH4() -> i32 {
        2
    }
}
