//! The device controls of the driver, shared with the tests that send them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, method, FILE_ANY_ACCESS)`.
const fn control(number: u32, method: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2) | method
}

/// Keeps the request, which can be cancelled.
pub const KEEP: u32 = control(1, 0);
/// Completes the kept request.
pub const RELEASE: u32 = control(2, 0);
/// Returns the input in reverse order, in the buffer that the list of the output's pages describes.
pub const REVERSE_DIRECT: u32 = control(3, 2);
/// Returns the input in reverse order, in the caller's buffer.
pub const REVERSE_NEITHER: u32 = control(4, 3);
/// Sends a request of its own to its own device, and returns the bytes that it read.
pub const FORWARD: u32 = control(5, 0);
/// Completes the request twice.
pub const COMPLETE_TWICE: u32 = control(6, 0);
/// Returns without completing the request.
pub const FORGET: u32 = control(7, 0);
/// A control that the driver does not know.
pub const UNKNOWN: u32 = control(8, 0);
