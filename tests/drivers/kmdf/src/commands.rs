//! The device controls of the driver, shared with the tests that send them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, METHOD_BUFFERED, FILE_ANY_ACCESS)`.
const fn control(number: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2)
}

/// Retrieves the next request of the manual queue and completes it. Commands that report the result
/// of a call return the call's status.
pub const RETRIEVE: u32 = control(1);
/// Returns the manual queue's state and its two counts.
pub const STATE: u32 = control(8);
/// Leaves the request pending, and makes it cancelable.
pub const KEEP_CANCELABLE: u32 = control(10);
/// Leaves the request pending.
pub const KEEP: u32 = control(12);
/// Completes the pending request without making it uncancelable first.
pub const COMPLETE: u32 = control(14);
/// Queues a work item twice. The work item completes the request.
pub const WORK: u32 = control(18);
/// Returns its input in reverse order, through memory objects.
pub const MEMORY: u32 = control(22);
/// Prints the name of the sender's file, and whether it is open on the driver's device.
pub const FILE: u32 = control(25);
/// Reports that the device has failed.
pub const FAIL: u32 = control(26);
/// Prints the fields of the device's `DEVICE_OBJECT`s.
pub const WDM: u32 = control(32);
/// Prints the statuses of settings for Plug and Play and power.
pub const SETTINGS: u32 = control(33);
/// Uses the device's keys in the registry.
pub const KEYS: u32 = control(35);
/// Prints properties of the device.
pub const PROPERTIES: u32 = control(36);
/// Prints the results of the framework's version functions.
pub const VERSION: u32 = control(37);
/// Opens the device `\Device\Simulated` as a target, and sends it requests synchronously.
pub const TARGET: u32 = control(39);
/// Sends a request to the target. The request's completion completes the command.
pub const SEND: u32 = control(40);
/// Prints the fields of the request's IRP and MDLs.
pub const LOWER: u32 = control(45);
/// Creates WMI instances.
pub const WMI: u32 = control(46);
/// Reports two children of the device, one in the child list and one statically.
pub const ADD_CHILDREN: u32 = control(47);
/// Prints the children in the child list and in the static list.
pub const CHILDREN: u32 = control(48);
/// Reports that the children are missing.
pub const REMOVE_CHILDREN: u32 = control(49);
/// Uses the lock of the interrupt.
pub const LOCK: u32 = control(50);
/// Queries the stack for the function table that the bus driver offers.
pub const QUERY: u32 = control(51);
/// Returns the parameters of the last open.
pub const OPENED: u32 = control(100);
/// Prints which buffers the request's IRP contains.
pub const IRP_BUFFERS: u32 = control(101);
/// Sends [`MEMORY`] with `METHOD_NEITHER` to the driver's own device.
pub const SEND_NEITHER: u32 = control(102);
/// Sends [`SECOND`] with `METHOD_IN_DIRECT` to the driver's own device.
pub const SEND_IN_DIRECT: u32 = control(103);
/// Prints the contents of the second buffer.
pub const SECOND: u32 = control(104);
/// Completes the request with 65 bytes.
pub const TOO_MUCH: u32 = control(105);
/// Completes the request with a status of the framework.
pub const FRAMEWORK_STATUS: u32 = control(106);
/// Checks the framework's objects, or runs the call that the input names.
pub const FACTS: u32 = control(107);
/// Acquires and releases the device's presentation lock.
pub const ACQUIRE_LOCK: u32 = control(52);
/// Acquires the device's presentation lock twice.
pub const ACQUIRE_LOCK_TWICE: u32 = control(53);
/// Acquires the presentation lock of an object that has none.
pub const ACQUIRE_OTHER_LOCK: u32 = control(54);
/// Forwards the request to the second queue, which dispatches it.
pub const FORWARD_SECOND: u32 = control(55);
/// Creates a timer, a DPC and a work item that are serialized with the device, and queues the DPC.
pub const SERIALIZE: u32 = control(56);
/// Queues a work item that waits for a lock that the request's callback holds.
pub const WAITING_WORK: u32 = control(57);
/// Queries the framework and the request's file.
pub const QUERIES: u32 = control(58);
/// Bugchecks with the framework's routine.
pub const BUGCHECK: u32 = control(59);
/// Creates a DMA enabler, a common buffer and a transaction.
pub const DMA_CREATE: u32 = control(60);
/// Starts a DMA transaction that writes the request's input to the device.
pub const DMA_START: u32 = control(61);
/// Completes the current DMA transfer.
pub const DMA_COMPLETE: u32 = control(62);
/// Completes 1000 bytes of the current DMA transfer.
pub const DMA_COMPLETE_SHORT: u32 = control(63);
/// Completes the DMA transaction after 10 bytes of the current transfer.
pub const DMA_COMPLETE_FINAL: u32 = control(64);
/// Executes the DMA transaction in a wrong state.
pub const DMA_EXECUTE: u32 = control(65);
/// Opens the next lower device as a target by its object, and sends a request to the target.
pub const OPEN_OBJECT: u32 = control(67);
/// Makes the driver refuse the next orderly removal.
pub const VETO: u32 = control(68);
/// Tries to change the list of the device's resources, and makes settings that have no effect in
/// the stand-in kernel.
pub const RESOURCE_LISTS: u32 = control(69);
/// Retrieves the device and the descriptions of a child.
pub const RETRIEVE_CHILD: u32 = control(70);
/// Adds and removes devices that are removed with the driver's own device, and uses the kernel's
/// objects below timers and DPCs.
pub const BELOW: u32 = control(71);
/// Prepares the locks and lists that threads share.
pub const PREPARE: u32 = control(200);
/// Uses locks and lists that threads share, after [`PREPARE`].
pub const TOGETHER: u32 = control(201);
/// Returns the counts of the threads that sent [`TOGETHER`].
pub const COUNTS: u32 = control(202);
/// Uses the memory that a remove lock protects, after [`PREPARE`]. The first thread that sends this
/// command removes the memory.
pub const REMOVE_TOGETHER: u32 = control(204);
/// Returns the number of uses, the number of remaining users, and the number of users for which the
/// removal did not wait.
pub const REMOVED: u32 = control(205);
/// Returns the mode in which the request's thread entered the kernel.
pub const PREVIOUS_MODE: u32 = control(203);
