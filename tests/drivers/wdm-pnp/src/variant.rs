//! The driver's deliberate faults, selected by its service name.

use core::sync::atomic::{AtomicUsize, Ordering};

use etw_driver_support::Service;

/// The driver's deliberate faults, selected by its service name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// A function driver without a fault.
    Function,
    /// A filter driver, which passes all requests down.
    Filter,
    /// The driver refuses to stop and to remove the device.
    Refuse,
    /// `AddDevice` fails.
    Add,
    /// `AddDevice` fails and leaves the device attached.
    AddAttached,
    /// `AddDevice` leaves `DO_DEVICE_INITIALIZING` set.
    Initializing,
    /// The start fails.
    Start,
    /// A second start of the device fails.
    Restart,
    /// The device starts, after the request was passed down with `IoForwardIrpSynchronously`.
    Forward,
    /// The device fails as soon as it has started.
    Failed,
    /// The removal leaves the device attached.
    Attached,
    /// The removal leaves the device's object.
    Deleted,
    /// The removal is completed without being passed to the lower drivers.
    Alone,
    /// The query for capabilities is never completed.
    Forgotten,
    /// The query for capabilities is left pending, but not marked as pending.
    Unmarked,
    /// A power request is never completed.
    Power,
    /// The request for a lower power state fails.
    Awake,
}

/// The service names.
const SERVICES: &[(&str, Variant)] = &[
    ("filter", Variant::Filter),
    ("refuse", Variant::Refuse),
    ("fault-add", Variant::Add),
    ("fault-add-attached", Variant::AddAttached),
    ("fault-initializing", Variant::Initializing),
    ("fault-start", Variant::Start),
    ("fault-restart", Variant::Restart),
    ("forward", Variant::Forward),
    ("failed", Variant::Failed),
    ("fault-attached", Variant::Attached),
    ("fault-deleted", Variant::Deleted),
    ("fault-alone", Variant::Alone),
    ("fault-forgotten", Variant::Forgotten),
    ("fault-unmarked", Variant::Unmarked),
    ("fault-power", Variant::Power),
    ("awake", Variant::Awake),
];

/// The index of the service's name in [`SERVICES`], or a larger number.
static SERVICE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Selects the variant by the service's name.
pub fn choose(service: Service<'_>) {
    let service = SERVICES.iter().position(|(name, _)| service.is(name));
    SERVICE.store(service.unwrap_or(usize::MAX), Ordering::Relaxed);
}

/// Returns the driver's variant.
pub fn variant() -> Variant {
    let service = SERVICES.get(SERVICE.load(Ordering::Relaxed));
    service.map_or(Variant::Function, |(_, variant)| *variant)
}
