//! The code that the benchmark measures.
//!
//! For each way to write the reference event there are callers, with the event and without;
//! what the event costs is the difference. It depends on the caller, so there are several:
//! three that call something else before and after, as most code of drivers does, and one
//! that only computes (`leaf`). Of the three, one calls routines with five arguments (`five`),
//! so that its frame has room for a fifth argument in any case; one calls routines with four,
//! all in registers (`four`); and one has the event's values in a request that it is passed,
//! and the status from the call before (`request`).
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

    /// With four arguments, all in registers.
    fn OtherOfFour(status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Something else of the kind.
    fn AnotherOfFour(status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Does something with a request.
    fn OtherOfRequest(request: *const Request) -> u32;
    /// Finishes a request.
    fn AnotherOfRequest(request: *const Request, status: u32) -> u32;
    /// Evaluates an argument of an event.
    fn Evaluate(bytes: u64) -> u64;

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

/// What a caller knows of a request.
#[repr(C)]
pub struct Request {
    bytes: u64,
    start: *const u8,
    length: usize,
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

/// Calls something else, with arguments in registers only.
fn other_of_four(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { OtherOfFour(status, bytes, start, length) }
}

/// Calls something else again, with arguments in registers only.
fn another_of_four(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { AnotherOfFour(status, bytes, start, length) }
}

/// Does something with a request.
fn other_of_request(request: &Request) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { OtherOfRequest(request) }
}

/// Finishes a request.
fn another_of_request(request: &Request, status: u32) -> u32 {
    // SAFETY: the benchmark provides it.
    unsafe { AnotherOfRequest(request, status) }
}

/// A value that is known to be evaluated only if this is called.
fn evaluate(bytes: u64) -> u64 {
    // SAFETY: the benchmark provides it.
    unsafe { Evaluate(bytes) }
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
    ($write:ident: $five:ident, $four:ident, $request:ident, $leaf:ident, $evaluated:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $five(
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
        pub unsafe extern "system" fn $four(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) -> u32 {
            let done = crate::other_of_four(status, bytes, start, length);
            // SAFETY: the caller says so.
            $write!(status, bytes, unsafe { crate::text(start, length) });
            done ^ crate::another_of_four(status, bytes, start, length)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $request(request: &crate::Request) -> u32 {
            let status = crate::other_of_request(request);
            $write!(status, request.bytes, {
                // SAFETY: the caller says so.
                unsafe { crate::text(request.start, request.length) }
            });
            crate::another_of_request(request, status)
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

        /// One of the event's arguments is a call.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $evaluated(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) {
            $write!(status, crate::evaluate(bytes), {
                // SAFETY: the caller says so.
                unsafe { crate::text(start, length) }
            });
        }
    };
}

pub(crate) use callers;

macro_rules! nothing {
    ($status:expr, $bytes:expr, $text:expr) => {
        // Named, but not evaluated.
        let _unused = || ($status, $bytes, $text);
    };
}

callers!(nothing: without_five, without_four, without_request, without_leaf, without_evaluated);
