//! The device controls of the driver, shared with the tests that send them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, method, FILE_ANY_ACCESS)`.
const fn control(number: u32, method: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2) | method
}

/// Leaves the request pending. It can be canceled.
pub const KEEP: u32 = control(1, 0);
/// Completes the pending request.
pub const RELEASE: u32 = control(2, 0);
/// Returns the input in reverse order, in the buffer described by the output's MDL.
pub const REVERSE_DIRECT: u32 = control(3, 2);
/// Returns the input in reverse order, in the caller's buffer.
pub const REVERSE_NEITHER: u32 = control(4, 3);
/// Sends a request that the driver creates to the driver's own device, and returns the bytes that
/// were read.
pub const FORWARD: u32 = control(5, 0);
/// Completes the request twice.
pub const COMPLETE_TWICE: u32 = control(6, 0);
/// Returns without completing the request.
pub const FORGET: u32 = control(7, 0);
/// Opens the driver's own device by name and attaches another device to it, and returns the result
/// of each step.
pub const BY_NAME: u32 = control(60, 0);
/// Writes an entry to the system's event log, and returns whether invalid sizes and objects are
/// refused.
pub const ERROR_LOG: u32 = control(61, 0);
/// Writes an entry whose strings extend beyond it.
pub const BAD_ERROR_LOG: u32 = control(62, 0);
/// Opens the device that the input names, and returns the status. Keeps no reference.
pub const OPEN: u32 = control(63, 0);
/// Opens the driver's own device for reading, and releases the file where no APC is delivered: at
/// `DISPATCH_LEVEL`, and in a guarded region.
///
/// Returns four numbers for each: the number of closes before the release returns, the number of
/// closes some time later, whether all APCs were disabled in the close, and the process.
pub const RELEASE_RAISED: u32 = control(64, 0);
/// Returns the results of `IoValidateDeviceIoControlAccess` for the last open, and for this
/// request: for reading, and for an access that does not exist.
pub const ACCESS: u32 = control(65, 0);
/// Returns the name of the file that was opened last, with its original case.
pub const FILE_NAME: u32 = control(66, 0);
/// Allocates an entry in the system's event log without writing it.
pub const LEAVE_ERROR_LOG: u32 = control(67, 0);
/// Writes an entry with three bytes of dump data.
pub const ODD_ERROR_LOG: u32 = control(68, 0);
/// A control code that the driver does not support.
pub const UNKNOWN: u32 = control(8, 0);
/// Sends two reads to the driver's own device with one request that the driver itself initializes,
/// and returns the bytes of both.
pub const INITIALIZE: u32 = control(9, 0);
/// Initializes a request that is in progress.
pub const INITIALIZE_SENT: u32 = control(10, 0);
/// Frees the memory of a request that is in progress.
pub const FREE_SENT: u32 = control(11, 0);
/// Initializes a request that the system allocated.
pub const INITIALIZE_ALLOCATED: u32 = control(12, 0);
/// Attaches two devices to each other, which forms a cycle.
pub const ATTACH_ROUND: u32 = control(13, 0);
/// Writes a device's own address into its `AttachedDevice`, and requests the top of the stack.
pub const STACK_ROUND: u32 = control(14, 0);
/// Makes a driver's list of devices a cycle, and deletes a device.
pub const LIST_ROUND: u32 = control(15, 0);
/// Makes a request's list of memory descriptors a cycle, and appends a descriptor.
pub const DESCRIPTORS_ROUND: u32 = control(16, 0);
/// Completes the request with more bytes than its output can hold.
pub const TOO_MUCH: u32 = control(17, 0);
/// Returns the last open's access, options and attributes. These are followed, for reading and for
/// changing the descriptor, by the right that the device's descriptor grants the opener, and the
/// status.
pub const OPENED: u32 = control(18, 0);
/// Sends reads to the driver's own device with requests in which the driver itself has a stack
/// location, and returns the bytes of all reads.
pub const OWN_LOCATION: u32 = control(20, 0);
/// Forwards a request that its lower driver also forwards. Returns 3 bytes if the lower driver was
/// first.
pub const FORWARD_TWICE: u32 = control(21, 0);
/// Reads from the driver's own device with a request from `IoBuildAsynchronousFsdRequest` that no
/// completion routine frees, and returns the bytes.
pub const READ_ASYNCHRONOUS: u32 = control(22, 0);
/// Returns as many bytes as there are open files on the device object.
pub const REFERENCES: u32 = control(23, 0);
/// Returns flags as the number of bytes: 1 if normal APCs are disabled, 2 if all APCs are disabled,
/// and 4 if the file is open for synchronous requests.
pub const APCS: u32 = control(24, 0);
/// Calls the I/O manager's default routine, which the driver object has for a request that the driver does
/// not serve.
pub const DEFAULT_ROUTINE: u32 = control(25, 0);
/// Returns the number of equal bytes in the second buffer and the reversed input.
pub const COMPARE_SECOND: u32 = control(19, 1);
