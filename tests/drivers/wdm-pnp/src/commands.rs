//! The device controls and the service names of the driver, shared with the tests that use them.

/// `CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800 + number, METHOD_BUFFERED, FILE_ANY_ACCESS)`.
const fn control(number: u32) -> u32 {
    (0x22 << 16) | ((0x800 + number) << 2)
}

/// Returns the requests that the device has got: the number of each minor function of `IRP_MJ_PNP`, and
/// from [`POWER`] on those of `IRP_MJ_POWER`.
pub const COUNTS: u32 = control(1);
/// Returns the device's power state and the states before, the newest first, each in a byte.
pub const STATES: u32 = control(2);
/// Says that the device's state has changed: it has failed from now on.
pub const FAIL: u32 = control(3);
/// Says that the device's children have changed.
pub const RELATIONS: u32 = control(4);
/// Returns the name of a link to the device's interface, in UTF-16.
pub const LINK: u32 = control(5);

/// The number of counted minor functions of `IRP_MJ_PNP`.
pub const POWER: usize = 24;
/// The number of counted minor functions.
pub const MINORS: usize = POWER + 4;

/// What the driver does otherwise than well, by the name of its service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// It is a function driver without a fault.
    Function,
    /// It is a filter driver, which passes all requests down.
    Filter,
    /// It refuses to stop and to remove the device.
    Refuse,
    /// `AddDevice` fails.
    Add,
    /// `AddDevice` fails and leaves the device attached.
    AddAttached,
    /// `AddDevice` leaves `DO_DEVICE_INITIALIZING`.
    Initializing,
    /// The start fails.
    Start,
    /// The device has failed as soon as it has started.
    Failed,
    /// The removal leaves the device attached.
    Attached,
    /// The removal leaves the device's object.
    Deleted,
    /// The removal is completed without the lower drivers.
    Alone,
    /// The query for capabilities is never completed.
    Forgotten,
    /// The query for capabilities is pending and not marked so.
    Unmarked,
    /// A power request is never completed.
    Power,
    /// The request for a lower power state fails.
    Awake,
}

/// The service names.
pub const SERVICES: &[(&str, Variant)] = &[
    ("filter", Variant::Filter),
    ("refuse", Variant::Refuse),
    ("fault-add", Variant::Add),
    ("fault-add-attached", Variant::AddAttached),
    ("fault-initializing", Variant::Initializing),
    ("fault-start", Variant::Start),
    ("failed", Variant::Failed),
    ("fault-attached", Variant::Attached),
    ("fault-deleted", Variant::Deleted),
    ("fault-alone", Variant::Alone),
    ("fault-forgotten", Variant::Forgotten),
    ("fault-unmarked", Variant::Unmarked),
    ("fault-power", Variant::Power),
    ("awake", Variant::Awake),
];
