//! The routines of advapi32.dll and kernel32.dll that this crate calls in user mode.
//!
//! The functions have the names, the signatures and the statuses of the kernel's routines, so that
//! the rest of the crate is the same in both modes. The routines return Win32 error codes, which
//! become the `NTSTATUS` of the same meaning. On systems other than Windows the program that links
//! the crate must define them; the tests do. The signatures come from evntprov.h.

use core::ffi::{CStr, c_char, c_void};

use super::{EnableCallback, RegHandle};
use crate::{EventDataDescriptor, EventDescriptor, Guid, NtStatus};

#[cfg_attr(target_os = "windows", link(name = "advapi32", kind = "raw-dylib"))]
unsafe extern "system" {
    fn EventRegister(
        provider: *const Guid,
        callback: Option<EnableCallback>,
        context: *mut c_void,
        handle: *mut RegHandle,
    ) -> u32;

    fn EventUnregister(handle: RegHandle) -> u32;

    fn EventSetInformation(
        handle: RegHandle,
        class: i32,
        information: *const c_void,
        length: u32,
    ) -> u32;

    fn EventWriteEx(
        handle: RegHandle,
        event: *const EventDescriptor,
        filter: u64,
        flags: u32,
        activity: *const Guid,
        related: *const Guid,
        count: u32,
        data: *const EventDataDescriptor<'_>,
    ) -> u32;

    fn EventActivityIdControl(code: u32, activity: *mut Guid) -> u32;

    fn EventProviderEnabled(handle: RegHandle, level: u8, keyword: u64) -> u8;

    fn EventEnabled(handle: RegHandle, event: *const EventDescriptor) -> u8;
}

#[cfg_attr(target_os = "windows", link(name = "kernel32", kind = "raw-dylib"))]
unsafe extern "system" {
    fn GetProcessHeap() -> *mut c_void;
    fn HeapAlloc(heap: *mut c_void, flags: u32, bytes: usize) -> *mut c_void;
    fn HeapFree(heap: *mut c_void, flags: u32, block: *mut c_void) -> i32;
    fn GetCurrentThreadId() -> u32;
    fn OutputDebugStringA(text: *const c_char);
}

/// Prints a string in the debugger.
pub fn print(text: &CStr) {
    // SAFETY: the string is NUL-terminated.
    unsafe { OutputDebugStringA(text.as_ptr()) };
}

/// Prints a string in the debugger. In user mode, messages have no level.
pub fn print_with_level(_level: u32, text: &CStr) {
    print(text);
}

/// Converts a Win32 error code to a status. Only the check for success is inlined.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a single comparison on the hot path")]
const fn status(code: u32) -> i32 {
    if code == 0 { 0 } else { failure(code).0 }
}

/// Converts a Win32 error code to the status that the kernel's routine returns in the same case
/// or, for other codes, to `NTSTATUS_FROM_WIN32`.
#[cold]
#[inline(never)]
const fn failure(code: u32) -> NtStatus {
    /// An error with the facility `FACILITY_NTWIN32`.
    const NTWIN32: u32 = 0xC007_0000;
    match code {
        // ERROR_ACCESS_DENIED
        5 => NtStatus::ACCESS_DENIED,
        // ERROR_INVALID_HANDLE
        6 => NtStatus::INVALID_HANDLE,
        // ERROR_NOT_ENOUGH_MEMORY and ERROR_OUTOFMEMORY
        8 | 14 => NtStatus::NO_MEMORY,
        // ERROR_INVALID_PARAMETER
        87 => NtStatus::INVALID_PARAMETER,
        // ERROR_MORE_DATA
        234 => NtStatus::BUFFER_OVERFLOW,
        // ERROR_ARITHMETIC_OVERFLOW
        534 => NtStatus::INTEGER_OVERFLOW,
        // ERROR_LOG_FILE_FULL
        1502 => NtStatus::LOG_FILE_FULL,
        other => NtStatus::from_bits(NTWIN32 | other & 0xFFFF),
    }
}

/// `EventRegister`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwRegister(
    provider: *const Guid,
    callback: Option<EnableCallback>,
    context: *mut c_void,
    handle: *mut RegHandle,
) -> i32 {
    // SAFETY: the caller upholds the contract of the kernel's routine, which is the same.
    status(unsafe { EventRegister(provider, callback, context, handle) })
}

/// `EventUnregister`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwUnregister(handle: RegHandle) -> i32 {
    // SAFETY: as above.
    status(unsafe { EventUnregister(handle) })
}

/// `EventSetInformation`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwSetInformation(
    handle: RegHandle,
    class: i32,
    information: *const c_void,
    length: u32,
) -> i32 {
    // SAFETY: as above.
    status(unsafe { EventSetInformation(handle, class, information, length) })
}

/// `EventWriteEx`.
#[inline(always)]
#[expect(
    non_snake_case,
    clippy::inline_always,
    clippy::too_many_arguments,
    reason = "the name and the parameters of the kernel's routine; part of every write function"
)]
pub unsafe fn EtwWriteEx(
    handle: RegHandle,
    event: *const EventDescriptor,
    filter: u64,
    flags: u32,
    activity: *const Guid,
    related: *const Guid,
    count: u32,
    data: *const EventDataDescriptor<'_>,
) -> i32 {
    // SAFETY: as above.
    status(unsafe { EventWriteEx(handle, event, filter, flags, activity, related, count, data) })
}

/// `EventActivityIdControl`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwActivityIdControl(code: u32, activity: *mut Guid) -> i32 {
    // SAFETY: as above.
    status(unsafe { EventActivityIdControl(code, activity) })
}

/// `EventProviderEnabled`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwProviderEnabled(handle: RegHandle, level: u8, keyword: u64) -> u8 {
    // SAFETY: as above.
    unsafe { EventProviderEnabled(handle, level, keyword) }
}

/// `EventEnabled`.
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn EtwEventEnabled(handle: RegHandle, event: *const EventDescriptor) -> u8 {
    // SAFETY: as above.
    unsafe { EventEnabled(handle, event) }
}

/// Allocates from the process's heap (`HeapAlloc`).
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn ExAllocatePool2(_flags: u64, bytes: usize, _tag: u32) -> *mut c_void {
    // SAFETY: the function has no preconditions.
    let heap = unsafe { GetProcessHeap() };
    // SAFETY: the handle refers to the process's heap.
    unsafe { HeapAlloc(heap, 0, bytes) }
}

/// Frees a block of the process's heap (`HeapFree`).
#[expect(non_snake_case, reason = "the name of the kernel's routine")]
pub unsafe fn ExFreePoolWithTag(block: *mut c_void, _tag: u32) {
    // SAFETY: the function has no preconditions.
    let heap = unsafe { GetProcessHeap() };
    // The caller passes a block that it allocated, so the call cannot fail.
    // SAFETY: the caller allocated the block from this heap and no longer uses it.
    let _freed = unsafe { HeapFree(heap, 0, block) };
}

/// Returns `PASSIVE_LEVEL`: user mode has no other IRQL.
#[expect(clippy::missing_const_for_fn, reason = "the kernel-mode function is not `const`")]
pub fn current_irql() -> u8 {
    super::PASSIVE_LEVEL
}

/// Returns a number, other than 0, of the current thread.
pub fn current_thread() -> u64 {
    // SAFETY: the function has no preconditions.
    u64::from(unsafe { GetCurrentThreadId() }).saturating_add(1)
}

/// Lets other threads run: sleeps for a millisecond.
pub fn pause() {
    #[cfg(target_os = "windows")]
    {
        #[link(name = "kernel32", kind = "raw-dylib")]
        unsafe extern "system" {
            fn Sleep(milliseconds: u32);
        }
        // SAFETY: the function has no preconditions.
        unsafe { Sleep(1) };
    }
    #[cfg(all(not(target_os = "windows"), not(loom)))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// The names of the routines, for errors.
pub const NAMES: super::Names = super::Names {
    register: "EventRegister",
    unregister: "EventUnregister",
    set_information: "EventSetInformation",
    write: "EventWriteEx",
    activity: "EventActivityIdControl",
};
