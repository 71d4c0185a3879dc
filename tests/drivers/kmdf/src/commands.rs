//! The device controls of the driver, shared with the tests that send them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, METHOD_BUFFERED, FILE_ANY_ACCESS)`.
const fn control(number: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2)
}

/// Retrieves the next request of the manual queue and completes it. Commands that report the result
/// of a call return the call's status.
pub const RETRIEVE: u32 = control(1);
/// Retrieves the next request of the manual queue and puts it back.
pub const REQUEUE: u32 = control(2);
/// Retrieves and completes the next request of the manual queue that was sent with the sender's
/// file.
pub const RETRIEVE_OF_FILE: u32 = control(3);
/// Stops the manual queue.
pub const STOP: u32 = control(4);
/// Starts the manual queue.
pub const START: u32 = control(5);
/// Purges the manual queue.
pub const PURGE: u32 = control(6);
/// Drains the manual queue.
pub const DRAIN: u32 = control(7);
/// Returns the manual queue's state and its two counts.
pub const STATE: u32 = control(8);
/// Requests a callback for when the manual queue becomes ready.
pub const READY_NOTIFY: u32 = control(9);
/// Leaves the request pending, and makes it cancelable.
pub const KEEP_CANCELABLE: u32 = control(10);
/// Leaves the request pending, and makes it cancelable with the other routine.
pub const KEEP_CANCELABLE_EX: u32 = control(11);
/// Leaves the request pending.
pub const KEEP: u32 = control(12);
/// Makes the pending request uncancelable, and completes it.
pub const RELEASE: u32 = control(13);
/// Completes the pending request without making it uncancelable first.
pub const COMPLETE: u32 = control(14);
/// Reports whether the pending request is canceled.
pub const IS_CANCELED: u32 = control(15);
/// Makes the pending request uncancelable, and returns the status.
pub const UNMARK: u32 = control(16);
/// Purges the default queue, and waits until the purge is complete.
pub const PURGE_AND_WAIT: u32 = control(17);
/// Queues a work item twice. The work item completes the request.
pub const WORK: u32 = control(18);
/// Queues the work item and flushes it.
pub const FLUSH_WORK: u32 = control(19);
/// Acquires a wait lock, then tries to acquire it again with timeouts.
pub const WAIT_LOCK: u32 = control(20);
/// Acquires a wait lock twice.
pub const WAIT_LOCK_TWICE: u32 = control(21);
/// Returns its input in reverse order, through memory objects.
pub const MEMORY: u32 = control(22);
/// Creates a tree of objects and deletes it.
pub const OBJECTS: u32 = control(23);
/// Creates an object, adds a reference, deletes the object, and releases the reference.
pub const REFERENCES: u32 = control(24);
/// Prints the name of the sender's file, and whether it is open on the driver's device.
pub const FILE: u32 = control(25);
/// Reports that the device has failed.
pub const FAIL: u32 = control(26);
/// Finds the requests in the manual queue without retrieving them.
pub const FIND: u32 = control(27);
/// Releases a reference that the driver does not hold.
pub const DEREFERENCE: u32 = control(28);
/// Completes the request from a timer, and waits for the completion by stopping a queue.
pub const STOP_AND_WAIT: u32 = control(29);
/// Forwards the pending request to the manual queue.
pub const FORWARD: u32 = control(30);
/// Deletes the request object. Drivers must not do this.
pub const DELETE: u32 = control(31);
/// Prints the fields of the device's `DEVICE_OBJECT`s.
pub const WDM: u32 = control(32);
/// Prints the statuses of settings for Plug and Play and power.
pub const SETTINGS: u32 = control(33);
/// Fills a collection and empties it.
pub const COLLECTION: u32 = control(34);
/// Uses the device's keys in the registry.
pub const KEYS: u32 = control(35);
/// Prints properties of the device.
pub const PROPERTIES: u32 = control(36);
/// Prints the results of the framework's version functions.
pub const VERSION: u32 = control(37);
/// Creates memory objects from a lookaside list.
pub const LOOKASIDE: u32 = control(38);
/// Opens the device `\Device\Simulated` as a target, and sends it requests synchronously.
pub const TARGET: u32 = control(39);
/// Sends a request to the target. The request's completion completes the command.
pub const SEND: u32 = control(40);
/// Cancels the request that was sent.
pub const CANCEL_SENT: u32 = control(41);
/// Sends a request with a timeout of 5 ms, synchronously.
pub const SEND_WITH_TIMEOUT: u32 = control(42);
/// Stops, starts, purges and closes the target, and sends requests in each state.
pub const STATES: u32 = control(43);
/// Completes a request that the driver sent. Drivers must not do this.
pub const COMPLETE_SENT: u32 = control(44);
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
/// Assigns and queries values that consist of several strings.
pub const MULTI_STRING: u32 = control(66);
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
