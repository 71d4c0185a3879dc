//! The code that the facts share: statuses, the count, the log of callbacks, and calls of the
//! framework.

use core::{
    ptr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use etw_driver_support::{made, nt};
use wdk_sys::{LARGE_INTEGER, NTSTATUS, WDF_OBJECT_ATTRIBUTES, WDFOBJECT};

use crate::framework::wdf;

pub const INVALID_PARAMETER: NTSTATUS = wdk_sys::STATUS_INVALID_PARAMETER;
// The framework's statuses, which are in wdfstatus.h.
pub const STATUS_WDF_OBJECT_ATTRIBUTES_INVALID: NTSTATUS = 0xC020_0209_u32.cast_signed();
pub const STATUS_WDF_PARENT_ASSIGNMENT_NOT_ALLOWED: NTSTATUS = 0xC020_020F_u32.cast_signed();
pub const STATUS_WDF_SYNCHRONIZATION_SCOPE_INVALID: NTSTATUS = 0xC020_0210_u32.cast_signed();
pub const STATUS_WDF_EXECUTION_LEVEL_INVALID: NTSTATUS = 0xC020_0211_u32.cast_signed();
pub const STATUS_WDF_PARENT_NOT_SPECIFIED: NTSTATUS = 0xC020_0212_u32.cast_signed();

/// Compares the result of a call with the result in Microsoft's source.
macro_rules! same {
    ($name:literal, $found:expr, $expected:expr $(,)?) => {
        match (&$found, &$expected) {
            (found, expected) if found == expected => crate::facts::common::count(),
            (found, expected) => {
                wdk::println!("FAILED {}: {found:x?}, expected {expected:x?}", $name);
            }
        }
    };
}
pub(super) use same;

pub static COUNT: AtomicU32 = AtomicU32::new(0);
/// The last letters that callbacks logged. The newest letter is in the lowest byte.
pub static LOG: AtomicU64 = AtomicU64::new(0);

pub fn count() {
    COUNT.fetch_add(1, Relaxed);
}

/// Adds a letter to the log.
pub fn log(letter: u8) {
    LOG.store((LOG.load(Relaxed) << 8) | u64::from(letter), Relaxed);
}

/// Returns the log, and empties it.
pub fn logged() -> u64 {
    LOG.swap(0, Relaxed)
}

/// Returns the log that consists of these letters.
pub const fn letters(text: &[u8]) -> u64 {
    let (mut log, mut at) = (0, 0);
    while at < text.len() {
        log = (log << 8) | text[at] as u64;
        at += 1;
    }
    log
}

/// Lets time pass.
pub fn wait(milliseconds: i64) {
    let mut interval = LARGE_INTEGER { QuadPart: -10_000 * milliseconds };
    let _status = nt!(KeDelayExecutionThread, 0, 0, &raw mut interval);
}

/// Creates a general object.
pub fn object(attributes: &mut WDF_OBJECT_ATTRIBUTES) -> (NTSTATUS, WDFOBJECT) {
    made(|handle| wdf!(WdfObjectCreate, attributes, handle))
}

pub fn reference(object: WDFOBJECT) {
    wdf!(WdfObjectReferenceActual, object, ptr::null_mut(), 0, c"".as_ptr());
}

pub fn dereference(object: WDFOBJECT) {
    wdf!(WdfObjectDereferenceActual, object, ptr::null_mut(), 0, c"".as_ptr());
}
