//! The routines of advapi32.dll and kernel32.dll that the library calls in user mode. They are the
//! kernel's mock routines under other names, so a status that a test sets is a Win32 error code.

use std::ffi::c_void;

use wdk_etw::{EventDescriptor, Guid};

use crate::{
    Callback, DataDescriptor, EtwActivityIdControl, EtwEventEnabled, EtwProviderEnabled,
    EtwRegister, EtwSetInformation, EtwUnregister, EtwWriteEx, ExAllocatePool2, ExFreePoolWithTag,
};

/// The process's heap.
const HEAP: usize = 0x4EA9;

/// Declares routines that return the result of a routine of the kernel.
macro_rules! routines {
    ($($user:ident = $kernel:ident($($name:ident: $type:ty),*) -> $result:ty;)*) => {$(
        // SAFETY: the library calls the routine by this name, and no other symbol has it.
        #[unsafe(no_mangle)]
        extern "system" fn $user($($name: $type),*) -> $result {
            $kernel($($name),*)
        }
    )*};
}

routines! {
    EventRegister = EtwRegister(
        provider: &Guid, callback: Option<Callback>, context: *mut c_void, handle: &mut u64
    ) -> i32;
    EventUnregister = EtwUnregister(handle: u64) -> i32;
    EventSetInformation = EtwSetInformation(
        handle: u64, class: i32, information: *const u8, length: u32
    ) -> i32;
    EventWriteEx = EtwWriteEx(
        handle: u64, event: &EventDescriptor, filter: u64, flags: u32, activity: Option<&Guid>,
        related: Option<&Guid>, count: u32, data: *const DataDescriptor
    ) -> i32;
    EventActivityIdControl = EtwActivityIdControl(code: u32, activity: &mut Guid) -> i32;
    EventProviderEnabled = EtwProviderEnabled(handle: u64, level: u8, keyword: u64) -> u8;
    EventEnabled = EtwEventEnabled(handle: u64, event: &EventDescriptor) -> u8;
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn GetCurrentThreadId() -> u32 {
    1
}

// SAFETY: as above.
#[unsafe(no_mangle)]
const extern "system" fn GetProcessHeap() -> *mut c_void {
    std::ptr::without_provenance_mut(HEAP)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn HeapAlloc(heap: *mut c_void, _flags: u32, bytes: usize) -> *mut c_void {
    assert_eq!(heap.addr(), HEAP);
    ExAllocatePool2(0, bytes, 0)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "system" fn HeapFree(_heap: *mut c_void, _flags: u32, block: *mut c_void) -> i32 {
    ExFreePoolWithTag(block, 0);
    1
}
