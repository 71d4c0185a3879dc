//! The device controls of the driver, shared with the tests that send them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, METHOD_BUFFERED, FILE_ANY_ACCESS)`.
const fn control(number: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2)
}

/// Returns the numbers of requests that the device has received, by minor function: first for
/// `IRP_MJ_PNP` and, from [`POWER`] on, for `IRP_MJ_POWER`.
pub const COUNTS: u32 = control(1);
/// Returns the device's current and previous power states, newest first, one byte each.
pub const STATES: u32 = control(2);
/// Reports that the device's state has changed. From then on, the device has failed.
pub const FAIL: u32 = control(3);
/// Reports that the device's children have changed.
pub const RELATIONS: u32 = control(4);
/// Returns the name of a link to the device's interface, in UTF-16.
pub const LINK: u32 = control(5);

/// Leaves the request pending in a queue from which it can be canceled.
pub const KEEP: u32 = control(6);
/// Leaves the request pending in a cancelable queue that accepts only one request.
pub const KEEP_ONE: u32 = control(7);
/// Leaves the request pending in the first queue, with a context that identifies it in the queue.
pub const KEEP_FOUND: u32 = control(17);
/// Completes the oldest pending request. Returns 1 byte if there was one.
pub const COMPLETE_NEXT: u32 = control(8);
/// Completes the request of [`KEEP_FOUND`]. Returns 1 byte if it was still in the queue.
pub const COMPLETE_FOUND: u32 = control(9);
/// Reverses the input. Add 0 to 3 for the buffering method.
pub const REVERSE: u32 = control(10);
/// Makes the driver send [`REVERSE`] to its own stack. The input's first byte is the method; the
/// other bytes are reversed.
pub const REVERSE_OWN: u32 = control(11);
/// Makes the driver write the input to its own device and read it back, once for each kind of
/// request.
pub const TRANSFER_OWN: u32 = control(12);
/// Makes the driver query its own stack for the device's state while the system sleeps.
pub const CAPABILITY: u32 = control(13);
/// Acquires the remove lock and does not release it.
pub const LEAK_LOCK: u32 = control(14);
/// Releases the remove lock with a tag with which it was not acquired.
pub const WRONG_TAG: u32 = control(15);
/// Returns a property of the device. The input's first byte is the property's number.
pub const PROPERTY: u32 = control(16);
/// Acquires a resource on the caller's thread, outside a critical region if the first byte is 0.
pub const RESOURCE: u32 = control(18);

/// Makes the driver send its own stack a device control that fails immediately, and one that the
/// driver cancels.
///
/// For each, returns whether the status was stored and whether the event was signaled, one byte each.
pub const FAIL_OWN: u32 = control(19);

/// The number of counted minor functions of `IRP_MJ_PNP`.
pub const POWER: usize = 24;
/// The number of counted minor functions.
pub const MINORS: usize = POWER + 4;
