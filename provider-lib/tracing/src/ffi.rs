//! The routines of ntoskrnl.exe that this crate calls. On other systems the program that links the
//! crate must define them; the tests do.

use core::ffi::c_void;

/// `PASSIVE_LEVEL`.
pub const PASSIVE_LEVEL: u8 = 0;
/// `APC_LEVEL`.
pub const APC_LEVEL: u8 = 1;
/// `DISPATCH_LEVEL`.
pub const DISPATCH_LEVEL: u8 = 2;

#[cfg_attr(
    target_os = "windows",
    link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "system" {
    /// IRQL: `DISPATCH_LEVEL` or below.
    fn PsGetCurrentThreadId() -> *mut c_void;
}

/// Returns a nonzero number for the current thread. IRQL: `DISPATCH_LEVEL` or below.
pub fn current_thread() -> u64 {
    // SAFETY: the callers check the IRQL.
    let thread = unsafe { PsGetCurrentThreadId() };
    (thread.addr() as u64).saturating_add(1)
}
