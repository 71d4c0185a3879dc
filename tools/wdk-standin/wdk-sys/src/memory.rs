//! The memory routines that compiled code calls implicitly. Drivers get them from the WDK's
//! ntoskrnl.lib; here they are imported from ntoskrnl.exe.

use core::ffi::{c_char, c_int, c_void};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: c_int, count: usize) -> *mut c_void;
    fn memcmp(one: *const c_void, other: *const c_void, count: usize) -> c_int;
    fn strlen(text: *const c_char) -> usize;
}

type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;
type Compare = unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int;

type Measure = unsafe extern "C" fn(*const c_char) -> usize;

/// Keeps the imports, which nothing references by name.
#[used]
static ROUTINES: (Copy, Copy, Set, Compare, Measure) = (memcpy, memmove, memset, memcmp, strlen);
