//! The code that the benchmark measures.
//!
//! For each way to write the reference event there are two callers, with the event and
//! without: one that calls something else before and after (`nl`), as most code of drivers
//! does, and one that only computes (`leaf`). What the event costs is the difference.
//!
//! The reference event: name `ReadComplete`, level 4, keyword 2, a status (32 bits), a
//! number of bytes (64 bits), and a text. Callers use the same values besides, as drivers do.

#![no_std]
#![allow(clippy::missing_safety_doc)]

mod ours;
mod peer;

use core::{ffi::c_void, panic::PanicInfo};

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// Whatever else a driver calls; with five arguments, as the framework's routines for
    /// a request's buffers have.
    fn Other(context: usize, status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Something else again.
    fn Another(context: usize, status: u32, bytes: u64, start: *const u8, length: usize) -> u32;

    fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memset(to: *mut c_void, value: i32, count: usize) -> *mut c_void;
    fn memcmp(one: *const c_void, other: *const c_void, count: usize) -> i32;
    fn strlen(text: *const c_void) -> usize;

    fn EtwRegister(a: usize, b: usize, c: usize, d: usize) -> u32;
    fn EtwUnregister(a: usize) -> u32;
    fn EtwSetInformation(a: usize, b: usize, c: usize, d: usize) -> u32;
    fn EtwWriteTransfer(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> u32;
    fn EtwActivityIdControl(a: usize, b: usize) -> u32;
}

/// What the compiler's own code and the peer call by name.
#[repr(transparent)]
struct Routines([*const (); 10]);

// SAFETY: they are addresses of functions.
unsafe impl Sync for Routines {}

#[used]
static ROUTINES: Routines = Routines([
    memcpy as *const (),
    memmove as *const (),
    memset as *const (),
    memcmp as *const (),
    strlen as *const (),
    EtwRegister as *const (),
    EtwUnregister as *const (),
    EtwSetInformation as *const (),
    EtwWriteTransfer as *const (),
    EtwActivityIdControl as *const (),
]);

/// Calls something else.
fn other(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { Other(0, status, bytes, start, length) }
}

/// Calls something else again.
fn another(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { Another(0, status, bytes, start, length) }
}

/// The text that a caller passes.
///
/// # Safety
///
/// There are so many bytes of UTF-8, and they stay.
const unsafe fn text<'a>(start: *const u8, length: usize) -> &'a str {
    // SAFETY: the caller says so.
    let bytes = unsafe { core::slice::from_raw_parts(start, length) };
    // SAFETY: the caller says so.
    unsafe { core::str::from_utf8_unchecked(bytes) }
}

/// What a caller does with its numbers besides.
fn mixed(status: u32, bytes: u64) -> u64 {
    bytes.wrapping_mul(3) ^ u64::from(status)
}

/// Makes the callers of a way to write the reference event.
macro_rules! callers {
    ($write:ident: $nl:ident, $leaf:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $nl(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) -> u32 {
            let done = crate::other(status, bytes, start, length);
            // SAFETY: the caller says so.
            $write!(status, bytes, unsafe { crate::text(start, length) });
            done ^ crate::another(status, bytes, start, length)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $leaf(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) -> u64 {
            // SAFETY: the caller says so.
            $write!(status, bytes, unsafe { crate::text(start, length) });
            crate::mixed(status, bytes)
        }
    };
}

pub(crate) use callers;

macro_rules! nothing {
    ($status:expr, $bytes:expr, $text:expr) => {{
        let _unused = ($status, $bytes, $text);
    }};
}

callers!(nothing: without_nl, without_leaf);
