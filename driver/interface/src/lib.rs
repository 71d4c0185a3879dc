//! What the sample driver and its clients agree on: how the device is found, its
//! control codes, and what goes in and comes out with each.
//!
//! All control codes use `METHOD_BUFFERED`: the input and the output share one
//! system buffer. Integers are little-endian.

#![no_std]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The name of the driver's service, and of its image but for `.sys`.
pub const SERVICE: &str = "etw_sample_driver";

/// The hardware id of the driver's device, which the plug-and-play manager enumerates from its
/// root.
pub const HARDWARE_ID: &str = r"Root\EtwSampleDriver";

/// The name of the driver's ETW provider. Its GUID is the standard hash of this
/// name.
pub const PROVIDER_NAME: &str = "WdkEtw.SampleDriver";

/// The provider group that the driver's provider is a member of: the standard hash
/// of "WdkEtw.SampleGroup".
pub const PROVIDER_GROUP: &str = "2e651177-aeab-5ffc-66e2-144601de7da8";

/// The provider's keywords.
pub mod keyword {
    /// What users of the device ask for.
    pub const REQUEST: u64 = 1 << 0;
    /// The device's way into and out of its working state.
    pub const POWER: u64 = 1 << 1;
    /// The periodic timer.
    pub const TIMER: u64 = 1 << 2;
    /// The driver's and the device's coming and going.
    pub const LIFECYCLE: u64 = 1 << 3;
    /// Events that are asked for, to be many.
    pub const LOAD: u64 = 1 << 4;
    /// Reads of a simulated store; with [`LOCAL`] or with [`REMOTE`].
    pub const READ: u64 = 1 << 5;
    /// What the simulated store has at hand.
    pub const LOCAL: u64 = 1 << 6;
    /// What the simulated store has elsewhere.
    pub const REMOTE: u64 = 1 << 7;
}

/// The interface class that the device registers, as the fields of a GUID:
/// `{0bc69c6d-8ee2-4d42-a33f-fd6a69354dd8}`.
pub const DEVICE_INTERFACE: (u32, u16, u16, [u8; 8]) = (
    0x0bc6_9c6d,
    0x8ee2,
    0x4d42,
    [0xa3, 0x3f, 0xfd, 0x6a, 0x69, 0x35, 0x4d, 0xd8],
);

/// Bytes that the device keeps from one write for the next reads.
pub const CAPACITY: usize = 4096;

/// `CTL_CODE` of the WDK: device type, function, buffering method and the access
/// that the caller's handle must have.
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

/// Sends bytes back: as many as go in come out, if there is room for them.
pub const IOCTL_ECHO: u32 = ctl_code(0x800, READ | WRITE);

/// As [`IOCTL_ECHO`], completed in a DPC at `DISPATCH_LEVEL`.
pub const IOCTL_ECHO_IN_DPC: u32 = ctl_code(0x801, READ | WRITE);

/// Starts the periodic timer, or stops it: a [`TimerControl`] goes in.
pub const IOCTL_SET_TIMER: u32 = ctl_code(0x802, WRITE);

/// Reads the device's counters: a [`Statistics`] comes out.
pub const IOCTL_GET_STATISTICS: u32 = ctl_code(0x803, READ);

/// Writes events, to see how a session copes: a [`Burst`] goes in.
pub const IOCTL_BURST: u32 = ctl_code(0x804, WRITE);

/// The most events of one burst.
pub const LARGEST_BURST: u32 = 10_000_000;

/// Waits for [`IOCTL_WAKE`], or to be cancelled: the number of the waking comes out, 8 bytes.
pub const IOCTL_WAIT: u32 = ctl_code(0x805, READ);

/// Wakes whoever has waited longest; `STATUS_NOT_FOUND` if nobody waits.
pub const IOCTL_WAKE: u32 = ctl_code(0x806, WRITE);

/// Simulates reads of a store, to see how keywords combine: [`Reads`] go in.
pub const IOCTL_SIMULATE_READS: u32 = ctl_code(0x807, WRITE);

/// The most reads of either kind that are simulated at once.
pub const MOST_READS: u32 = 1_000;

/// The value of the service's parameters whose text every event carries, as a trait.
pub const TAG_PARAMETER: &str = "TraceTag";

/// UTF-16 units that the value has at most.
pub const TAG_CAPACITY: usize = 32;

/// Milliseconds from one tick of the timer to the next, and until the first.
pub const TIMER_PERIOD_MS: u32 = 10;

/// The input of [`IOCTL_SET_TIMER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct TimerControl {
    /// 1 to start the timer, 0 to stop it; anything else is refused.
    pub run: u32,
}

/// The input of [`IOCTL_BURST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Burst {
    /// How many events to write, up to [`LARGEST_BURST`].
    pub count: u32,
    /// What the events say of who asked for them, besides their numbers.
    pub sender: u32,
}

/// The input of [`IOCTL_SIMULATE_READS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reads {
    /// Reads with the keywords `READ` and `LOCAL`, up to [`MOST_READS`].
    pub local: u32,
    /// Reads with the keywords `READ` and `REMOTE`, up to [`MOST_READS`].
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
    /// Bytes that writes brought.
    pub bytes_written: u64,
    /// Ticks of the timer.
    pub timer_ticks: u64,
    /// Events that ETW did not take.
    pub events_failed: u64,
    /// Of these: for want of memory, or of a buffer (`STATUS_NO_MEMORY`).
    pub failed_without_memory: u64,
    /// Of these: larger than a session's buffer (`STATUS_BUFFER_OVERFLOW`).
    pub failed_for_a_buffer: u64,
    /// Of these: larger than an event can be (`STATUS_INTEGER_OVERFLOW`).
    pub failed_for_size: u64,
    /// Events whose fields did not fit, and were cut.
    pub events_cut: u64,
    /// Requests that wait for [`IOCTL_WAKE`] and were woken.
    pub woken: u64,
    /// Notifications of sessions that the provider has got.
    pub notifications: u64,
    /// What sessions want of the provider together: whether they want anything (1 or 0), and
    /// the most detailed level.
    pub enabled: u32,
    /// See [`Self::enabled`].
    pub level: u32,
    /// Keywords of which some session wants any.
    pub match_any: u64,
    /// Keywords that every session wants in each event.
    pub match_all: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_codes_are_those_that_ctl_code_makes() {
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
    fn structures_have_no_padding() {
        assert_eq!(size_of::<TimerControl>(), 4);
        assert_eq!(size_of::<Burst>(), 8);
        assert_eq!(size_of::<Reads>(), 8);
        assert_eq!(size_of::<Statistics>(), 104);
    }
}
