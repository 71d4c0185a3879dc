//! Loops with the reference event, which the benchmark times on a processor.
//!
//! `…_writes` writes the event repeatedly. `…_sum` and `…_checksum` compute a value from an array,
//! with the event in the loop: the compiler vectorizes a sum if the loop contains nothing else,
//! whereas each step of a checksum depends on the previous one.

use core::ptr;

use crate::nothing;

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn EtwWriteEx(
        handle: u64,
        event: *const EventDescriptor,
        filter: u64,
        flags: u32,
        activity: *const u8,
        related_activity: *const u8,
        count: u32,
        data: *const DataDescriptor,
    ) -> u32;
}

/// An `EVENT_DESCRIPTOR`.
#[repr(C)]
struct EventDescriptor {
    id: u16,
    version: u8,
    channel: u8,
    level: u8,
    opcode: u8,
    task: u16,
    keyword: u64,
}

/// An `EVENT_DATA_DESCRIPTOR`.
#[repr(C)]
struct DataDescriptor {
    address: u64,
    size: u32,
    reserved: u32,
}

/// The prime of the FNV-1a checksum.
pub const PRIME: u64 = 0x0100_0000_01B3;

/// Defines the loop that only writes events, for one way to write the reference event.
macro_rules! writes {
    ($write:ident: $writes:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $writes(count: u64, start: *const u8, length: usize) {
            // SAFETY: the caller upholds the function's contract.
            let name = unsafe { crate::text(start, length) };
            for bytes in 0..count {
                let status = bytes as u32;
                $write!(status, bytes, name);
            }
        }
    };
}

pub(crate) use writes;

/// Calls `EtwWriteEx` with data descriptors that are prepared before the loop.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn bare_writes(count: u64, start: *const u8, length: usize) {
    static EVENT: EventDescriptor =
        EventDescriptor { id: 1, version: 0, channel: 0, level: 4, opcode: 0, task: 0, keyword: 2 };
    let data = [DataDescriptor { address: start as u64, size: length as u32, reserved: 0 }];
    for _ in 0..count {
        // SAFETY: the event, the descriptor and the text outlive the call.
        unsafe {
            EtwWriteEx(1, &EVENT, 0, 0, ptr::null(), ptr::null(), data.len() as u32, data.as_ptr())
        };
    }
}

/// Defines the loops over an array, for one way to write the reference event.
macro_rules! arrays {
    ($write:ident: $sum:ident, $checksum:ident) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $sum(
            values: *const u64,
            count: usize,
            start: *const u8,
            length: usize,
        ) -> u64 {
            // SAFETY: the caller upholds the function's contract.
            let values = unsafe { core::slice::from_raw_parts(values, count) };
            // SAFETY: the caller upholds the function's contract.
            let name = unsafe { crate::text(start, length) };
            let mut sum = 0_u64;
            for &value in values {
                sum = sum.wrapping_add(value);
                let status = value as u32;
                $write!(status, sum, name);
            }
            sum
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "system" fn $checksum(
            values: *const u64,
            count: usize,
            start: *const u8,
            length: usize,
        ) -> u64 {
            // SAFETY: the caller upholds the function's contract.
            let values = unsafe { core::slice::from_raw_parts(values, count) };
            // SAFETY: the caller upholds the function's contract.
            let name = unsafe { crate::text(start, length) };
            let mut sum = 0_u64;
            for &value in values {
                sum = (sum ^ value).wrapping_mul(crate::loops::PRIME);
                let status = value as u32;
                $write!(status, sum, name);
            }
            sum
        }
    };
}

pub(crate) use arrays;

arrays!(nothing: nothing_sum, nothing_checksum);
