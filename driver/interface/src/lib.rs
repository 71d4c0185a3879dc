//! The interface between the sample driver and its clients: the names that clients use to find the
//! device, and the control codes with their input and output.
//!
//! All control codes use `METHOD_BUFFERED`: the input and the output share one
//! system buffer. Integers are little-endian.

#![no_std]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The name of the driver's service, and of its image without `.sys`.
pub const SERVICE: &str = "etw_sample_driver";

/// The hardware id of the driver's device, which the plug-and-play manager enumerates from its
/// root.
pub const HARDWARE_ID: &str = r"Root\EtwSampleDriver";

/// The name of the driver's ETW provider. Its GUID is the standard hash of this
/// name.
pub const PROVIDER_NAME: &str = "WdkEtw.SampleDriver";

/// The name of the client's ETW provider, which runs in user mode. Its GUID is the standard hash of
/// this name.
pub const CLIENT_PROVIDER_NAME: &str = "WdkEtw.SampleClient";

/// The provider group that the driver's provider is a member of: the standard hash
/// of "WdkEtw.SampleGroup".
pub const PROVIDER_GROUP: &str = "2e651177-aeab-5ffc-66e2-144601de7da8";

/// The provider's keywords.
pub mod keyword {
    /// Requests from users of the device.
    pub const REQUEST: u64 = 1 << 0;
    /// Power transitions into and out of D0.
    pub const POWER: u64 = 1 << 1;
    /// The periodic timer.
    pub const TIMER: u64 = 1 << 2;
    /// Loading and unloading of the driver; arrival and removal of the device.
    pub const LIFECYCLE: u64 = 1 << 3;
    /// The events of a burst ([`IOCTL_BURST`](super::IOCTL_BURST)).
    pub const LOAD: u64 = 1 << 4;
    /// Reads of a simulated store, combined with [`LOCAL`] or [`REMOTE`].
    pub const READ: u64 = 1 << 5;
    /// Local reads of the simulated store.
    pub const LOCAL: u64 = 1 << 6;
    /// Remote reads of the simulated store.
    pub const REMOTE: u64 = 1 << 7;
}

/// The interface class that the device registers, as the fields of a GUID:
/// `{0bc69c6d-8ee2-4d42-a33f-fd6a69354dd8}`.
pub const DEVICE_INTERFACE: (u32, u16, u16, [u8; 8]) =
    (0x0bc6_9c6d, 0x8ee2, 0x4d42, [0xa3, 0x3f, 0xfd, 0x6a, 0x69, 0x35, 0x4d, 0xd8]);

/// The maximum length of a write. The device keeps the bytes of the last write for reads.
pub const CAPACITY: usize = 4096;

/// Returns a control code like `CTL_CODE` of the WDK: device type, function, buffering method, and
/// the access required of the caller's handle.
const fn ctl_code(function: u32, access: u32) -> u32 {
    /// `FILE_DEVICE_UNKNOWN`.
    const DEVICE_TYPE: u32 = 0x22;
    /// `METHOD_BUFFERED`.
    const METHOD: u32 = 0;
    (DEVICE_TYPE << 16) | (access << 14) | (function << 2) | METHOD
}

/// `FILE_READ_ACCESS`.
const READ: u32 = 1;
/// `FILE_WRITE_ACCESS`.
const WRITE: u32 = 2;

/// Returns the input bytes; the output buffer must be at least as large as the input.
pub const IOCTL_ECHO: u32 = ctl_code(0x800, READ | WRITE);

/// Returns the input bytes like [`IOCTL_ECHO`], but completes in a DPC at `DISPATCH_LEVEL`.
pub const IOCTL_ECHO_IN_DPC: u32 = ctl_code(0x801, READ | WRITE);

/// Starts or stops the periodic timer. Input: a [`TimerControl`].
pub const IOCTL_SET_TIMER: u32 = ctl_code(0x802, WRITE);

/// Returns the device's counters. Output: a [`Statistics`].
pub const IOCTL_GET_STATISTICS: u32 = ctl_code(0x803, READ);

/// Writes a burst of events, to load a session. Input: a [`Burst`].
pub const IOCTL_BURST: u32 = ctl_code(0x804, WRITE);

/// The maximum number of events in a burst.
pub const MAX_BURST: u32 = 10_000_000;

/// Waits until [`IOCTL_WAKE`] is sent or the request is canceled. Output: the number of the wake
/// request, 8 bytes.
pub const IOCTL_WAIT: u32 = ctl_code(0x805, READ);

/// Completes the [`IOCTL_WAIT`] request that has waited longest; fails with `STATUS_NOT_FOUND` if
/// none is pending.
pub const IOCTL_WAKE: u32 = ctl_code(0x806, WRITE);

/// Simulates reads of a store, to test combinations of keywords. Input: [`Reads`].
pub const IOCTL_SIMULATE_READS: u32 = ctl_code(0x807, WRITE);

/// The maximum number of reads of each kind that one request simulates.
pub const MAX_READS: u32 = 1_000;

/// The size of the activity id at the start of a traced request's input.
pub const ACTIVITY_SIZE: usize = 16;

/// The bit of the function code that marks a traced request.
const TRACED: u32 = 0x80 << 2;
/// The function-code bits that the control codes above share, including the mark.
const FUNCTIONS: u32 = 0xF80 << 2;

/// Returns the control code for a traced request, which carries the activity of its sender.
///
/// The request's input begins with the activity's id, [`ACTIVITY_SIZE`] bytes, and so does its
/// output, if it returns any. The driver's events for the request have this activity, so that one
/// activity runs from the sender's call through the driver and back.
#[must_use]
pub const fn traced(code: u32) -> u32 {
    code | TRACED
}

/// Returns the control code without the mark of a traced request, or `None` if the mark is missing.
#[must_use]
pub const fn untraced(code: u32) -> Option<u32> {
    if code & FUNCTIONS == 0x880 << 2 { Some(code & !TRACED) } else { None }
}

/// The registry value in the service's parameters whose text every event contains as a trait.
pub const TAG_PARAMETER: &str = "TraceTag";

/// The maximum length of that value in UTF-16 units.
pub const TAG_CAPACITY: usize = 32;

/// The timer's period, and the delay until its first tick, in milliseconds.
pub const TIMER_PERIOD_MS: u32 = 10;

/// The input of [`IOCTL_SET_TIMER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TimerControl {
    /// 1 starts the timer, 0 stops it; other values are rejected.
    pub run: u32,
}

/// The input of [`IOCTL_BURST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Burst {
    /// The number of events to write, up to [`MAX_BURST`].
    pub count: u32,
    /// A number that each event of the burst contains, next to its own number.
    pub sender: u32,
}

/// The input of [`IOCTL_SIMULATE_READS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reads {
    /// The number of reads with the keywords `READ` and `LOCAL`, up to [`MAX_READS`].
    pub local: u32,
    /// The number of reads with the keywords `READ` and `REMOTE`, up to [`MAX_READS`].
    pub remote: u32,
}

/// The output of [`IOCTL_GET_STATISTICS`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Statistics {
    /// Bytes that reads returned.
    pub bytes_read: u64,
    /// Bytes that were written.
    pub bytes_written: u64,
    /// Timer ticks.
    pub timer_ticks: u64,
    /// Events that ETW did not accept.
    pub events_failed: u64,
    /// Of these, events that failed for lack of memory or of a free buffer (`STATUS_NO_MEMORY`).
    pub failed_without_memory: u64,
    /// Of these, events that are larger than a session's buffer (`STATUS_BUFFER_OVERFLOW`).
    pub failed_for_a_buffer: u64,
    /// Of these, events that are larger than ETW allows (`STATUS_INTEGER_OVERFLOW`).
    pub failed_for_size: u64,
    /// Events with a field that was truncated because it did not fit.
    pub events_cut: u64,
    /// [`IOCTL_WAIT`] requests that were completed by [`IOCTL_WAKE`].
    pub woken: u64,
    /// Enable notifications that the provider has received.
    pub notifications: u64,
    /// 1 if at least one session enables the provider, else 0.
    pub enabled: u32,
    /// The combined level: the highest level that a session enables.
    pub level: u32,
    /// The combined match-any mask: the union of the sessions' masks.
    pub match_any: u64,
    /// The combined match-all mask: the intersection of the sessions' masks.
    pub match_all: u64,
    /// The outcome of the provider's registration.
    pub registration: Registration,
    /// The first notifications that the provider received, in the order of their arrival.
    pub first_notifications: [NotificationRecord; MAX_RECORDED],
}

/// The number of notifications that the driver records ([`Statistics::first_notifications`]).
pub const MAX_RECORDED: usize = 8;

/// The values of [`Registration::outcome`].
pub mod outcome {
    /// The driver has not registered the provider.
    pub const NONE: u32 = 0;
    /// ETW accepted the provider and all its settings.
    pub const COMPLETE: u32 = 1;
    /// The provider is registered, but ETW refused some of its settings.
    pub const INCOMPLETE: u32 = 2;
    /// `EtwRegister` failed.
    pub const REFUSED: u32 = 3;
    /// The library did not call `EtwRegister`. The driver's debug output contains the reason.
    pub const NOT_CALLED: u32 = 4;
}

/// The outcome of the provider's registration. A status of 0 means that the call succeeded or that
/// the driver did not make it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct Registration {
    /// The overall outcome, one of [`outcome`].
    pub outcome: u32,
    /// The NTSTATUS of `EtwRegister`.
    pub status: u32,
    /// The NTSTATUS of `EtwSetInformation(EventProviderSetTraits)`.
    pub traits: u32,
    /// The NTSTATUS of `EtwSetInformation(EventProviderUseDescriptorType)`.
    pub descriptor_types: u32,
    /// The NTSTATUS of `EtwSetInformation(EventProviderBinaryTrackInfo)`.
    pub binary_tracking: u32,
    /// The number of traits that the driver could not add to the declared ones: the service's name
    /// and the tag.
    pub traits_left_out: u32,
}

/// A notification, with the arguments that ETW passed to the enable callback.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout,
)]
#[repr(C)]
pub struct NotificationRecord {
    /// 1 if the notification arrived and its record is complete; otherwise, the other fields are 0.
    pub recorded: u32,
    /// 1 if the notification arrived before the registration was complete, otherwise 0.
    pub during_registration: u32,
    /// The control code: 0 disables, 1 enables, 2 requests the state.
    pub control_code: u32,
    /// The level.
    pub level: u32,
    /// The match-any mask.
    pub match_any: u64,
    /// The match-all mask.
    pub match_all: u64,
    /// The bytes of the source id, a GUID.
    pub source: [u8; 16],
    /// The type of the filter descriptor, or 0 without one.
    pub filter_kind: u32,
    /// The size in bytes that the filter descriptor states, or 0 without one.
    pub filter_size: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_equal_those_of_ctl_code() {
        assert_eq!(IOCTL_ECHO, 0x0022_E000);
        assert_eq!(IOCTL_ECHO_IN_DPC, 0x0022_E004);
        assert_eq!(IOCTL_SET_TIMER, 0x0022_A008);
        assert_eq!(IOCTL_GET_STATISTICS, 0x0022_600C);
        assert_eq!(IOCTL_BURST, 0x0022_A010);
        assert_eq!(IOCTL_WAIT, 0x0022_6014);
        assert_eq!(IOCTL_WAKE, 0x0022_A018);
        assert_eq!(IOCTL_SIMULATE_READS, 0x0022_A01C);
    }

    #[test]
    fn traced_codes_differ_in_one_bit_of_the_function() {
        assert_eq!(traced(IOCTL_ECHO), 0x0022_E200);
        assert_eq!(untraced(traced(IOCTL_WAKE)), Some(IOCTL_WAKE));
        assert_eq!(untraced(IOCTL_SIMULATE_READS), None);
        assert_eq!(untraced(0x0022_2FFC), None, "another function with the bit");
    }

    #[test]
    fn structures_have_no_padding() {
        assert_eq!(size_of::<TimerControl>(), 4);
        assert_eq!(size_of::<Burst>(), 8);
        assert_eq!(size_of::<Reads>(), 8);
        assert_eq!(size_of::<Registration>(), 24);
        assert_eq!(size_of::<NotificationRecord>(), 56);
        assert_eq!(size_of::<Statistics>(), 104 + 24 + MAX_RECORDED * 56);
    }
}
