//! The interface between the driver that runs the probes and its client.
//!
//! A request is an [`Ask`], optionally followed by bytes. The answer to an [`Ask`] is a [`Reply`].
//! [`Callbacks`] contains the enable callbacks that the driver has received. All control codes use
//! `METHOD_BUFFERED`: the input and the output share one system buffer, which is in non-paged pool.
//! Integers are little-endian.

#![no_std]

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// The name of the driver's service, and of its image without `.sys`.
pub const SERVICE: &str = "etw_probes_driver";

/// The hardware id of the driver's device, which the Plug and Play manager enumerates from its
/// root.
pub const HARDWARE_ID: &str = r"Root\EtwProbesDriver";

/// The version of this interface, which the driver returns in each [`Reply`].
pub const VERSION: u32 = 1;

/// The fields of a GUID.
pub type GuidFields = (u32, u16, u16, [u8; 8]);

/// The interface class that the device registers: `{5a1c3f0e-6f0a-4c07-9f0d-9b1f0c64a3d1}`.
pub const DEVICE_INTERFACE: GuidFields =
    (0x5a1c_3f0e, 0x6f0a, 0x4c07, [0x9f, 0x0d, 0x9b, 0x1f, 0x0c, 0x64, 0xa3, 0xd1]);

/// The provider that every registration registers: `{c6a0f3b2-1d55-4f0e-8a43-2f7b8ce0d951}`.
pub const PROVIDER: GuidFields =
    (0xc6a0_f3b2, 0x1d55, 0x4f0e, [0x8a, 0x43, 0x2f, 0x7b, 0x8c, 0xe0, 0xd9, 0x51]);

/// The activity id that the driver sets when it calls the routines for activity ids:
/// `{0b57ac1e-0001-4000-8000-00000000a11e}`.
pub const ACTIVITY: GuidFields = (0x0b57_ac1e, 0x0001, 0x4000, [0x80, 0, 0, 0, 0, 0, 0xa1, 0x1e]);

/// The registry value in the service's parameters that makes the driver run probes in
/// `DriverEntry`.
///
/// If the value is nonzero, the driver runs the probes the next time it is loaded. The driver sets
/// the value to 0 first, so that a bugcheck does not repeat at each start of the system.
pub const ASK_IN_DRIVER_ENTRY: &str = "AskInDriverEntry";

/// The number of registrations that the driver can hold at the same time.
pub const SLOTS: usize = 4;

/// The number of enable callbacks that the driver stores until [`operation::RESET`].
pub const MAX_CALLBACKS: usize = 64;

/// The period of the timer in milliseconds.
pub const TIMER_PERIOD_MS: u32 = 10;

/// The maximum payload size in bytes of an event that the driver writes.
pub const MAX_PAYLOAD: u64 = 80 * 1024;

/// Returns a control code, like the WDK's `CTL_CODE`.
const fn ctl_code(function: u32) -> u32 {
    /// `FILE_DEVICE_UNKNOWN`.
    const DEVICE_TYPE: u32 = 0x22;
    /// `FILE_READ_ACCESS | FILE_WRITE_ACCESS`.
    const ACCESS: u32 = 3;
    (DEVICE_TYPE << 16) | (ACCESS << 14) | (function << 2)
}

/// Requests an operation. Input: an [`Ask`], followed by the operation's bytes. Output: a
/// [`Reply`].
pub const IOCTL_ASK: u32 = ctl_code(0x900);

/// Returns the enable callbacks since the last reset. Output: [`Callbacks`].
pub const IOCTL_CALLBACKS: u32 = ctl_code(0x901);

/// The operations that an [`Ask`] can request, by their numbers.
pub mod operation {
    /// Ends all registrations, and discards all recorded callbacks.
    pub const RESET: u32 = 1;
    /// Calls `EtwRegister` for a slot. Reply: the status; `numbers[0]` is 1 if the handle is not 0;
    /// `numbers[1]` is the number of callbacks before the routine returned.
    pub const REGISTER: u32 = 2;
    /// Calls `EtwUnregister` for a slot. Reply: the status; `numbers[0]` is the number of callbacks
    /// since the call began.
    pub const UNREGISTER: u32 = 3;
    /// Calls `EtwSetInformation` for a slot.
    ///
    /// `form` is the information class, `numbers[0]` is one of [`pointer`](super::pointer), and
    /// `numbers[1]` is the length to pass; the bytes follow the [`Ask`](super::Ask). Reply: the
    /// status.
    pub const SET_INFORMATION: u32 = 4;
    /// Writes events with a slot's registration.
    ///
    /// `form` contains bits of [`write`](super::write). `numbers[0]` is the size of the payload,
    /// `numbers[1]` is the number of events, `numbers[2]` is the keyword, and `numbers[3]` is the
    /// level, with `EtwWriteEx`'s flags in the upper half. Event metadata follows the
    /// [`Ask`](super::Ask). Reply: the first and the last status; `numbers[0]` is the number of
    /// writes that succeeded, `numbers[1]` the number that failed.
    pub const WRITE: u32 = 5;
    /// Calls `EtwActivityIdControl` with the codes 1 to 5. Reply: the statuses in the order of the
    /// codes, and the ids that the calls left in the argument.
    pub const ACTIVITY: u32 = 6;
    /// Calls `EtwActivityIdControlKernel` to read, set and read the id, if the kernel provides the
    /// routine. Reply: the statuses, and the ids that were read.
    pub const ACTIVITY_KERNEL: u32 = 7;
    /// Sets the thread's activity id, writes an event without an id with a slot's registration, and
    /// restores the thread's id.
    ///
    /// `form` is one of [`setter`](super::setter), and determines how the id is set. Reply: the
    /// statuses of setting and writing.
    pub const IMPLICIT: u32 = 8;
    /// Looks up a routine with `MmGetSystemRoutineAddress`; `form` is one of
    /// [`routine`](super::routine). Reply: `available`.
    pub const ROUTINE: u32 = 9;
    /// Starts the periodic timer.
    pub const TIMER_START: u32 = 10;
    /// Stops the timer.
    ///
    /// Reply: `numbers` are the number of ticks, the time from the start to the first tick, the
    /// shortest and the longest time between ticks, the time from the first to the last tick, and
    /// the frequency, all from the performance counter.
    pub const TIMER_STOP: u32 = 11;
}

/// The contexts in which the driver can perform an operation.
pub mod place {
    /// In the callback of the device's queue, at `PASSIVE_LEVEL`.
    pub const CALLER: u32 = 0;
    /// In a work item of the framework, at `PASSIVE_LEVEL`.
    pub const WORK_ITEM: u32 = 1;
    /// In a DPC, at `DISPATCH_LEVEL`.
    pub const DPC: u32 = 2;
    /// In a thread that the driver creates, at `PASSIVE_LEVEL`.
    pub const SYSTEM_THREAD: u32 = 3;
    /// In `DriverEntry`.
    ///
    /// The driver performed the operations when it was loaded, if
    /// [`ASK_IN_DRIVER_ENTRY`](super::ASK_IN_DRIVER_ENTRY) was set. Only
    /// [`operation::ACTIVITY`](super::operation::ACTIVITY) and
    /// [`operation::ACTIVITY_KERNEL`](super::operation::ACTIVITY_KERNEL) are supported. Otherwise,
    /// `available` and `statuses[7]` are 0.
    pub const DRIVER_ENTRY: u32 = 4;
    /// In the callback of the device's queue, with the IRQL raised to `DISPATCH_LEVEL`.
    pub const RAISED: u32 = 5;
}

/// The pointers that [`operation::SET_INFORMATION`] can pass.
pub mod pointer {
    /// The bytes that follow the [`Ask`](super::Ask).
    pub const BYTES: u64 = 0;
    /// A null pointer.
    pub const NULL: u64 = 1;
    /// The address 1, which is never mapped.
    pub const DANGLING: u64 = 2;
}

/// The bits of the `form` of [`operation::WRITE`].
pub mod write {
    /// Passes [`Ask::guid`](super::Ask::guid) as the related activity id.
    pub const RELATED: u32 = 1;
    /// Passes the bytes that follow the [`Ask`](super::Ask) as event metadata (a data descriptor of
    /// type 1).
    pub const METADATA: u32 = 2;
    /// Adds a 4-byte data descriptor of type 9, which is undefined.
    pub const UNKNOWN_TYPE: u32 = 4;
    /// Passes no activity id. Without this bit, each event carries [`ACTIVITY`](super::ACTIVITY).
    pub const IMPLICIT_ACTIVITY: u32 = 8;
}

/// The ways in which [`operation::IMPLICIT`] sets the thread's activity id.
pub mod setter {
    /// Leaves the id unchanged.
    pub const NONE: u32 = 0;
    /// With `EtwActivityIdControl`.
    pub const PLAIN: u32 = 1;
    /// With `EtwActivityIdControlKernel`.
    pub const KERNEL: u32 = 2;
}

/// The routines that [`operation::ROUTINE`] looks up.
pub mod routine {
    /// `EtwActivityIdControlKernel`.
    pub const ACTIVITY_KERNEL: u32 = 0;
    /// `IoCreateSystemThread`.
    pub const CREATE_THREAD: u32 = 1;
    /// `EtwSetInformation`.
    pub const SET_INFORMATION: u32 = 2;
    /// `EtwWriteEx`.
    pub const WRITE_EX: u32 = 3;
}

/// The status in a [`Reply`] for a call that was not made.
pub const NOT_CALLED: u32 = u32::MAX;

/// A request for an operation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Ask {
    /// One of [`operation`].
    pub operation: u32,
    /// The number of the registration, less than [`SLOTS`].
    pub slot: u32,
    /// One of [`place`].
    pub place: u32,
    /// The operation's form.
    pub form: u32,
    /// The operation's numbers.
    pub numbers: [u64; 4],
    /// The operation's GUID.
    pub guid: [u8; 16],
}

/// The answer to an [`Ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reply {
    /// [`VERSION`].
    pub version: u32,
    /// The operation of the [`Ask`].
    pub operation: u32,
    /// 1 if the routine that the operation requires exists, otherwise 0.
    pub available: u32,
    /// The IRQL at which the operation ran.
    pub irql: u32,
    /// The process in which the operation ran.
    pub process: u32,
    /// The thread in which the operation ran.
    pub thread: u32,
    /// The NTSTATUS values of the calls; [`NOT_CALLED`] for calls that were not made.
    pub statuses: [u32; 8],
    /// The operation's numbers.
    pub numbers: [u64; 8],
    /// The operation's ids.
    pub guids: [[u8; 16]; 6],
}

impl Reply {
    /// Returns an answer without results.
    #[must_use]
    pub const fn new(operation: u32) -> Self {
        Self {
            version: VERSION,
            operation,
            available: 1,
            irql: 0,
            process: 0,
            thread: 0,
            statuses: [NOT_CALLED; 8],
            numbers: [0; 8],
            guids: [[0; 16]; 6],
        }
    }
}

/// The time at which an enable callback arrived, relative to the calls for its registration.
pub mod phase {
    /// Before `EtwRegister` was called, or after `EtwUnregister` returned.
    pub const NOT_REGISTERED: u8 = 0;
    /// Before `EtwRegister` returned.
    pub const REGISTERING: u8 = 1;
    /// While the provider is registered.
    pub const REGISTERED: u8 = 2;
    /// Before `EtwUnregister` returned.
    pub const UNREGISTERING: u8 = 3;
    /// Before `EtwSetInformation` returned.
    pub const SETTING: u8 = 4;
}

/// An enable callback, as the driver received it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Callback {
    /// The performance counter.
    pub time: u64,
    /// `MatchAnyKeyword`.
    pub match_any: u64,
    /// `MatchAllKeyword`.
    pub match_all: u64,
    /// `SourceId`; zeros if the pointer was null.
    pub source: [u8; 16],
    /// The type of the filter, or 0 if there are no filter data.
    pub filter_type: u32,
    /// The size of the filter data in bytes.
    pub filter_size: u32,
    /// `IsEnabled`, the control code.
    pub code: u32,
    /// The registration.
    pub slot: u32,
    /// The current thread.
    pub thread: u32,
    /// The IRQL.
    pub irql: u8,
    /// `Level`.
    pub level: u8,
    /// One of [`phase`].
    pub phase: u8,
    /// Bit 0: there are filter data. Bit 1: the pointer to the source id is null.
    pub flags: u8,
}

/// The enable callbacks since the last reset.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Callbacks {
    /// [`VERSION`].
    pub version: u32,
    /// The number of callbacks, which can exceed the number of stored callbacks.
    pub count: u32,
    /// The callbacks, oldest first.
    pub callbacks: [Callback; MAX_CALLBACKS],
}

impl Callbacks {
    /// Returns a table without callbacks.
    #[must_use]
    pub fn empty() -> Self {
        Self::new_zeroed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_fixed_sizes_without_padding() {
        assert_eq!(size_of::<Ask>(), 64);
        assert_eq!(size_of::<Reply>(), 216);
        assert_eq!(size_of::<Callback>(), 64);
        assert_eq!(size_of::<Callbacks>(), 8 + 64 * MAX_CALLBACKS);
    }

    #[test]
    fn control_codes_equal_those_of_ctl_code() {
        assert_eq!(IOCTL_ASK, 0x0022_E400);
        assert_eq!(IOCTL_CALLBACKS, 0x0022_E404);
    }
}
