//! The messages, which are written like the macros that WPP generates.

use core::{
    ffi::c_void,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{guid, utf16};
use wdk_sys::{GUID, NTSTATUS};

use crate::control::{enabled, routine};

/// The GUID of a source file's messages, which is the name of the TMF file.
pub static MESSAGES: GUID =
    guid(0x0c3f_5e7a, 0x91d2, 0x3b64, [0xa1, 0x05, 0x5c, 0x2e, 0x77, 0x10, 0x9d, 0x4f]);

pub type TraceMessage = unsafe extern "C" fn(u64, u32, *const GUID, u16, ...) -> NTSTATUS;
type TraceMessageVa = unsafe extern "C" fn(u64, u32, *const GUID, u16, *const Pair) -> NTSTATUS;

/// Two arguments of a message: the address and the size of data.
#[repr(C)]
pub struct Pair(pub *const c_void, pub usize);

/// `TRACE_MESSAGE_*`.
pub const SEQUENCE: u32 = 1;
pub const WITH_GUID: u32 = 2;
pub const TIMESTAMP: u32 = 8;
pub const PERFORMANCE_TIMESTAMP: u32 = 16;
pub const SYSTEM_INFO: u32 = 32;
/// The flags of all messages that WPP generates.
pub const FLAGS: u32 = SEQUENCE | WITH_GUID | TIMESTAMP | SYSTEM_INFO;

/// The levels.
pub const ERROR: u32 = 2;
pub const INFORMATION: u32 = 4;
pub const VERBOSE: u32 = 5;

/// The flags of the first set.
pub const OPENING: u32 = 1;
pub const DETAILS: u32 = 2;

static TRACE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Finds the routine that writes messages.
pub fn find() {
    TRACE.store(routine(&utf16(b"WmiTraceMessage")), Ordering::Release);
}

/// Returns the routine that writes messages.
pub fn trace_message() -> TraceMessage {
    let found = TRACE.load(Ordering::Acquire);
    // SAFETY: the routine was found, and has this type.
    unsafe { core::mem::transmute::<*mut c_void, TraceMessage>(found) }
}

/// Writes a message to the session that enables its flag and level. Each argument is a reference to
/// the argument's bytes.
macro_rules! trace {
    ($set:expr, $flag:expr, $level:expr, $number:expr $(, $argument:expr)* $(,)?) => {
        if let Some(logger) = enabled($set, $flag, $level) {
            // SAFETY: each argument is an address with its size, and a null address ends the list.
            let _status = unsafe {
                trace_message()(
                    logger,
                    FLAGS,
                    &raw const MESSAGES,
                    $number $(, ptr::from_ref($argument).cast::<c_void>(), size_of_val($argument))*,
                    ptr::null::<c_void>(),
                )
            };
        }
    };
}

/// A string in WPP's form of a counted string: its size, then its bytes.
const NAME: [u16; 6] = utf16(b"device");

/// Writes the messages about an opened file.
pub fn of_opening(irql: u8) {
    trace!(0, OPENING, INFORMATION, 10_u16, &irql, b"first\0");
    trace!(
        0,
        DETAILS,
        VERBOSE,
        11,
        &-5_i32,
        &0xFFFF_FFFF_8000_1234_u64,
        &(NAME.len() as u16 * 2),
        &NAME,
        &0xC000_0022_u32,
        &2_u8,
    );
    trace!(0, OPENING, ERROR, 12);
    trace!(1, 1, INFORMATION, 13, &crate::control::GUIDS[1], &1.5_f64);
}

/// Writes a message with the routine that has a list of arguments as its parameter.
pub fn by_list(logger: u64) -> NTSTATUS {
    let found = routine(&utf16(b"WmiTraceMessageVa"));
    // SAFETY: the routine has this type.
    let trace = unsafe { core::mem::transmute::<*mut c_void, TraceMessageVa>(found) };
    let (irql, text) = (3_u8, b"list\0");
    let list = [
        Pair(ptr::from_ref(&irql).cast(), 1),
        Pair(text.as_ptr().cast(), text.len()),
        Pair(ptr::null(), 0),
    ];
    // SAFETY: a null address terminates the list.
    unsafe { trace(logger, FLAGS, &raw const MESSAGES, 10, list.as_ptr()) }
}
