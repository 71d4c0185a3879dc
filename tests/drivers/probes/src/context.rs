//! Attributes of framework objects, statuses and names.

pub use etw_driver_support::attributes;
use wdk_sys::{NT_SUCCESS, NTSTATUS};

/// Converts a failure status to an error.
pub const fn check(status: NTSTATUS) -> Result<(), NTSTATUS> {
    if NT_SUCCESS(status) { Ok(()) } else { Err(status) }
}

/// Converts an ASCII string to UTF-16 at compile time.
pub const fn utf16<const N: usize>(text: &str) -> [u16; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() == N, "the array must be as long as the text");
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = bytes[at] as u16;
        at += 1;
    }
    units
}
