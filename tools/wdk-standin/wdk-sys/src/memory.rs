//! The memory routines that compiled code calls implicitly, imported from ntoskrnl.exe. WDK builds
//! take them from ntoskrnl.lib.

use core::ffi::{c_char, c_int, c_void};

use crate::ntddk::{memcmp, memcpy, memmove, memset, strlen};

type Copy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;
type Compare = unsafe extern "C" fn(*const c_void, *const c_void, usize) -> c_int;
type Measure = unsafe extern "C" fn(*const c_char) -> usize;

/// Keeps the imports, which nothing references by name.
#[used]
static ROUTINES: (Copy, Copy, Set, Compare, Measure) = (memcpy, memmove, memset, memcmp, strlen);
