//! The code that the benchmark measures.
//!
//! For each way to write the reference event, there are functions with and without the event; the
//! difference is the event's cost. The cost depends on the caller, so there are four callers:
//!
//! - `five` calls routines with five arguments before and after, so its frame always has room for a
//!   fifth argument;
//! - `four` calls routines with four arguments, all of which are in registers;
//! - `request` takes the event's values from a request, and the status from the preceding call;
//! - `leaf` calls nothing and only computes.
//!
//! The reference event is named `ReadComplete` and has level 4, keyword 2, a status (32 bits), a
//! byte count (64 bits) and a string. Like drivers, the callers also use these values for other
//! purposes.

#![no_std]
#![allow(clippy::missing_safety_doc)]

#[cfg(feature = "facades")]
mod facades;
mod helpers;
mod ours;
mod peer;

use core::{ffi::c_void, panic::PanicInfo};

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {}
}

// SAFETY: the benchmark provides these routines, and those that are marked as safe use no memory.
#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    /// Represents another call in a driver, with five arguments, like the framework's routines for
    /// request buffers.
    safe fn Other(context: usize, status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Represents a second call with five arguments.
    safe fn Another(
        context: usize,
        status: u32,
        bytes: u64,
        start: *const u8,
        length: usize,
    ) -> u32;

    /// Represents a call with four arguments, all of which are in registers.
    safe fn OtherOfFour(status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Represents a second call with four arguments.
    safe fn AnotherOfFour(status: u32, bytes: u64, start: *const u8, length: usize) -> u32;
    /// Represents a call that uses a request.
    safe fn OtherOfRequest(request: &Request) -> u32;
    /// Represents a call that completes a request.
    safe fn AnotherOfRequest(request: &Request, status: u32) -> u32;
    /// Evaluates an event's argument; the benchmark counts the calls.
    safe fn Evaluate(bytes: u64) -> u64;

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

/// A request.
#[repr(C)]
pub struct Request {
    bytes: u64,
    start: *const u8,
    length: usize,
}

/// The routines that compiler-generated code and the peer reference by name.
#[repr(transparent)]
struct Routines([*const (); 10]);

// SAFETY: the pointers are addresses of functions.
unsafe impl Sync for Routines {}

#[used]
static ROUTINES: Routines = Routines([
    memcpy as *const (), memmove as *const (), memset as *const (), memcmp as *const (),
    strlen as *const (), EtwRegister as *const (), EtwUnregister as *const (),
    EtwSetInformation as *const (), EtwWriteTransfer as *const (),
    EtwActivityIdControl as *const (),
]);

/// Calls `Other`.
fn other(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    Other(0, status, bytes, start, length)
}

/// Calls `Another`.
fn another(status: u32, bytes: u64, start: *const u8, length: usize) -> u32 {
    Another(0, status, bytes, start, length)
}

/// Returns the string that a caller passes.
///
/// # Safety
///
/// `start` must point to `length` bytes of UTF-8 that do not change while the result exists.
const unsafe fn text<'a>(start: *const u8, length: usize) -> &'a str {
    // SAFETY: the caller guarantees that the bytes are readable.
    let bytes = unsafe { core::slice::from_raw_parts(start, length) };
    // SAFETY: the caller guarantees that the bytes are UTF-8.
    unsafe { core::str::from_utf8_unchecked(bytes) }
}

/// Computes a value from a caller's numbers.
fn mixed(status: u32, bytes: u64) -> u64 {
    bytes.wrapping_mul(3) ^ u64::from(status)
}

/// Declares a provider with the reference event, and with events that have the same types of fields.
/// An event with a number is in the manifest.
macro_rules! provider {
    ($module:ident ($($option:tt)*): $($event:ident $(= $id:literal)?),*) => {
        #[wdk_etw::provider($($option)*)]
        pub mod $module {
            #[keyword]
            pub const READ: Keyword = Keyword::bit(1);

            $(
                #[event($(id = $id,)? level = Info, keyword = READ)]
                pub fn $event(status: u32, bytes: u64, name: &str);
            )*
        }
    };
}

pub(crate) use provider;

/// Defines the callers for one way to write the reference event.
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
            // SAFETY: the caller upholds the function's contract.
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
            let done = crate::OtherOfFour(status, bytes, start, length);
            // SAFETY: the caller upholds the function's contract.
            $write!(status, bytes, unsafe { crate::text(start, length) });
            done ^ crate::AnotherOfFour(status, bytes, start, length)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $request(request: &crate::Request) -> u32 {
            let status = crate::OtherOfRequest(request);
            $write!(status, request.bytes, {
                // SAFETY: the caller upholds the function's contract.
                unsafe { crate::text(request.start, request.length) }
            });
            crate::AnotherOfRequest(request, status)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $leaf(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) -> u64 {
            // SAFETY: the caller upholds the function's contract.
            $write!(status, bytes, unsafe { crate::text(start, length) });
            crate::mixed(status, bytes)
        }

        /// Writes an event whose argument is the result of a call.
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $evaluated(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) {
            $write!(status, crate::Evaluate(bytes), {
                // SAFETY: the caller upholds the function's contract.
                unsafe { crate::text(start, length) }
            });
        }
    };
}

pub(crate) use callers;

/// Defines a function that writes nine events between calls, or one without the feature. The two
/// sizes differ by the size of eight events in the image.
macro_rules! many {
    ($many:ident, $feature:literal, $write:ident: $first:tt; $($more:tt),*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $many(
            status: u32,
            bytes: u64,
            start: *const u8,
            length: usize,
        ) {
            // SAFETY: the caller upholds the function's contract.
            let name = unsafe { crate::text(start, length) };
            let status = crate::other(status, bytes, start, length);
            $write!($first, status, bytes, name);
            $(
                let status = crate::other(status, bytes, start, length);
                #[cfg(feature = $feature)]
                $write!($more, status, bytes, name);
            )*
            let status = crate::other(status, bytes, start, length);
            crate::other(status, bytes, start, length);
        }
    };
}

pub(crate) use many;

macro_rules! nothing {
    ($status:expr, $bytes:expr, $text:expr) => {
        // The closure names the arguments without evaluating them.
        let _unused = || ($status, $bytes, $text);
    };
}

callers!(nothing: without_five, without_four, without_request, without_leaf, without_evaluated);
