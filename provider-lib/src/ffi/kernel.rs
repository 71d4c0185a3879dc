//! The routines of ntoskrnl.exe that this crate calls.
//!
//! On Windows the crate imports them without an import library. On other systems the program that
//! links the crate must define them; the tests do. The signatures come from wdm.h.

use core::ffi::{CStr, c_char, c_void};

use super::{EnableCallback, RegHandle};
use crate::{EventDataDescriptor, EventDescriptor, Guid};

#[cfg_attr(
    target_os = "windows",
    link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "system" {
    /// IRQL: `PASSIVE_LEVEL`.
    pub fn EtwRegister(
        provider: *const Guid,
        callback: Option<EnableCallback>,
        context: *mut c_void,
        handle: *mut RegHandle,
    ) -> i32;

    /// IRQL: `PASSIVE_LEVEL`.
    pub fn EtwUnregister(handle: RegHandle) -> i32;

    /// IRQL: `PASSIVE_LEVEL`.
    pub fn EtwSetInformation(
        handle: RegHandle,
        class: i32,
        information: *const c_void,
        length: u32,
    ) -> i32;

    /// IRQL: any.
    pub fn EtwWriteEx(
        handle: RegHandle,
        event: *const EventDescriptor,
        filter: u64,
        flags: u32,
        activity: *const Guid,
        related: *const Guid,
        count: u32,
        data: *const EventDataDescriptor<'_>,
    ) -> i32;

    /// IRQL: `APC_LEVEL` or below; any to create an id.
    pub fn EtwActivityIdControl(code: u32, activity: *mut Guid) -> i32;

    /// IRQL: any.
    pub fn EtwProviderEnabled(handle: RegHandle, level: u8, keyword: u64) -> u8;

    /// IRQL: any.
    pub fn EtwEventEnabled(handle: RegHandle, event: *const EventDescriptor) -> u8;

    /// IRQL: `DISPATCH_LEVEL` or below, for non-paged pool.
    pub fn ExAllocatePool2(flags: u64, bytes: usize, tag: u32) -> *mut c_void;

    /// IRQL: `DISPATCH_LEVEL` or below.
    pub fn ExFreePoolWithTag(block: *mut c_void, tag: u32);

    /// IRQL: `DISPATCH_LEVEL` or below.
    fn PsGetCurrentThreadId() -> *mut c_void;
}

#[cfg_attr(
    target_os = "windows",
    link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "C" {
    /// IRQL: `DIRQL` or below. The routine has variable arguments; x64 and ARM64 pass a variable
    /// pointer argument like any other.
    fn DbgPrint(format: *const c_char, text: *const c_char) -> i32;

    /// IRQL: `DIRQL` or below. Has variable arguments, as `DbgPrint` does.
    fn DbgPrintEx(component: u32, level: u32, format: *const c_char, text: *const c_char) -> i32;
}

/// Prints a string in the kernel debugger.
pub fn print(text: &CStr) {
    // SAFETY: the format takes one NUL-terminated string.
    unsafe { DbgPrint(c"%s".as_ptr(), text.as_ptr()) };
}

/// `DPFLTR_IHVDRIVER_ID` of dpfilter.h.
const DPFLTR_IHVDRIVER_ID: u32 = 77;

/// Prints a driver's message with this level (`DPFLTR_*_LEVEL`) in the kernel debugger.
pub fn print_with_level(level: u32, text: &CStr) {
    // SAFETY: the format takes one NUL-terminated string.
    unsafe { DbgPrintEx(DPFLTR_IHVDRIVER_ID, level, c"%s".as_ptr(), text.as_ptr()) };
}

/// Returns a number, other than 0, of the current thread. IRQL: `DISPATCH_LEVEL` or below.
pub fn current_thread() -> u64 {
    // SAFETY: the callers run at PASSIVE_LEVEL.
    let thread = unsafe { PsGetCurrentThreadId() };
    (thread.addr() as u64).saturating_add(1)
}

#[cfg(not(target_arch = "aarch64"))]
#[cfg_attr(
    target_os = "windows",
    link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")
)]
unsafe extern "system" {
    /// IRQL: any. wdm.h for x64 has an inline function that reads CR8 instead.
    fn KeGetCurrentIrql() -> u8;
}

/// Returns the current IRQL.
#[cfg(not(target_arch = "aarch64"))]
pub fn current_irql() -> u8 {
    // SAFETY: the routine has no preconditions.
    unsafe { KeGetCurrentIrql() }
}

#[cfg(target_os = "windows")]
#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// IRQL: `APC_LEVEL` or below.
    fn KeDelayExecutionThread(mode: i8, alertable: u8, interval: *const i64) -> i32;
}

/// Lets other threads run: sleeps for a millisecond in the kernel. IRQL: `PASSIVE_LEVEL`.
pub fn pause() {
    #[cfg(target_os = "windows")]
    {
        /// One millisecond, in units of 100 ns; negative because it is relative to now.
        static MOMENT: i64 = -10_000;
        /// `KernelMode`.
        const MODE: i8 = 0;
        // The reason why the wait ended does not matter: the caller checks its condition again.
        // SAFETY: the interval is a constant, and the caller runs at PASSIVE_LEVEL.
        let _status = unsafe { KeDelayExecutionThread(MODE, 0, &raw const MOMENT) };
    }
    #[cfg(all(not(target_os = "windows"), not(loom)))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The names of the routines, for errors.
pub const NAMES: super::Names = super::Names {
    register: "EtwRegister",
    unregister: "EtwUnregister",
    set_information: "EtwSetInformation",
    write: "EtwWriteEx",
    activity: "EtwActivityIdControl",
};
