//! The driver's ETW provider and events.

use core::fmt::Display;

use etw_sample_interface::{PROVIDER_GROUP, PROVIDER_NAME, Statistics, keyword};
use wdk_etw::{
    Activity, ActivityId, Control, Guid, Notification, NtStatus, Provider, RegisterError,
    Registered, UnicodeString, debug_print, emit, guid, guid_of_name,
};
use wdk_sys::{
    NTSTATUS, STATUS_BUFFER_OVERFLOW, STATUS_INTEGER_OVERFLOW, STATUS_NO_MEMORY, STATUS_SUCCESS,
    ULONG,
};
use zerocopy::IntoBytes;

use crate::record;

pub use self::provider::{
    PowerState, burst, d0_entry, d0_exit, device_added, driver_failed, driver_loaded,
    driver_unloaded, file_cleaned_up, file_closed, file_created, local_read, remote_read,
    surprise_removed,
};

/// The provider. Events about the life of the driver and of the device have ids, which makes them
/// manifest-based (`inf/etw_sample_driver.man`); the others are `TraceLogging` events.
#[wdk_etw::provider(
    name = "WdkEtw.SampleDriver",
    group = "2e651177-aeab-5ffc-66e2-144601de7da8",
    trait_(128, b"sample"),
    on_enable = super::count_notification,
    on_disable = super::count_notification,
    on_capture_state = super::capture_state,
)]
mod provider {
    /// Requests from users of the device.
    #[keyword]
    pub const REQUEST: Keyword = Keyword::bit(0);
    /// Power transitions into and out of D0.
    #[keyword]
    pub const POWER: Keyword = Keyword::bit(1);
    /// The periodic timer.
    #[keyword]
    pub const TIMER: Keyword = Keyword::bit(2);
    /// Loading and unloading of the driver, arrival and removal of the device.
    #[keyword]
    pub const LIFECYCLE: Keyword = Keyword::bit(3);
    /// Events of bursts.
    #[keyword]
    pub const LOAD: Keyword = Keyword::bit(4);
    /// Reads of a simulated store.
    #[keyword]
    pub const READ: Keyword = Keyword::bit(5);
    /// Local reads of the simulated store.
    #[keyword]
    pub const LOCAL: Keyword = Keyword::bit(6);
    /// Remote reads of the simulated store.
    #[keyword]
    pub const REMOTE: Keyword = Keyword::bit(7);

    #[tasks]
    enum Task {
        /// The driver as a whole.
        Driver = 1,
        /// The device.
        Device = 2,
    }

    /// `WDF_POWER_DEVICE_STATE`.
    #[map]
    pub enum PowerState {
        /// Working.
        D0 = 1,
        D1 = 2,
        D2 = 3,
        D3 = 4,
        /// Off, without a return to D0.
        #[name = "D3 for good"]
        D3Final = 5,
        /// Ready for hibernation.
        #[name = "prepared for hibernation"]
        PrepareForHibernation = 6,
    }

    /// The driver was loaded.
    #[event(id = 1, level = Info, keyword = LIFECYCLE, task = Driver, opcode = Start)]
    pub fn driver_loaded();

    /// The driver is being unloaded.
    #[event(id = 2, level = Info, keyword = LIFECYCLE, task = Driver, opcode = Stop)]
    pub fn driver_unloaded();

    /// Loading the driver, or adding its device, failed.
    #[event(id = 3, level = Error, keyword = LIFECYCLE, task = Driver,
        message = "The driver failed with status %1.")]
    pub fn driver_failed(status: NtStatus);

    /// The device was added.
    #[event(id = 4, level = Info, keyword = LIFECYCLE, task = Device)]
    pub fn device_added();

    /// The device enters D0 from a state.
    #[event(id = 5, level = Info, keyword = POWER, task = Device,
        message = "The device enters D0, from %1.")]
    pub fn d0_entry(state: PowerState);

    /// The device leaves D0 for a state.
    #[event(id = 6, level = Info, keyword = POWER, task = Device,
        message = "The device leaves D0, for %1.")]
    pub fn d0_exit(state: PowerState);

    /// The device was removed by surprise.
    #[event(id = 7, level = Warning, keyword = LIFECYCLE, task = Device,
        message = "The device was pulled out.")]
    pub fn surprise_removed();

    /// A file was opened.
    #[event(level = Verbose, keyword = REQUEST)]
    pub fn file_created();

    /// The last handle to a file was closed.
    #[event(level = Verbose, keyword = REQUEST)]
    pub fn file_cleaned_up();

    /// A file was closed: its last request has completed.
    #[event(level = Verbose, keyword = REQUEST)]
    pub fn file_closed();

    /// A read request completed.
    #[event(level = Info, keyword = REQUEST)]
    pub fn read(requested: usize, returned: usize, status: NtStatus);

    /// A write request completed.
    #[event(level = Info, keyword = REQUEST)]
    pub fn write(length: usize, status: NtStatus);

    /// The first bytes of a write.
    #[event(level = Verbose, keyword = REQUEST)]
    pub fn write_data(data: &[u8]);

    /// A device control request arrived.
    #[event(level = Info, keyword = REQUEST, opcode = Start, name = "DeviceControl")]
    pub fn device_control_start(#[hex] code: u32);

    /// A device control request completed.
    #[event(level = Info, keyword = REQUEST, opcode = Stop, name = "DeviceControl")]
    pub fn device_control_stop(#[hex] code: u32, returned: usize, status: NtStatus);

    /// A device control request was rejected.
    #[event(level = Warning, keyword = REQUEST)]
    pub fn bad_request(#[hex] code: u32, status: NtStatus);

    /// The DPC processes a device control request.
    #[event(level = Verbose, keyword = REQUEST)]
    pub fn dpc_ran();

    /// The timer ticked.
    #[event(level = Verbose, keyword = TIMER)]
    pub fn timer_ticked(ticks: u64);

    /// One event of a burst.
    #[event(level = Verbose, keyword = LOAD)]
    pub fn burst(sender: u32, number: u32);

    /// A local read of the simulated store.
    #[event(level = Info, keyword = READ | LOCAL)]
    pub fn local_read(number: u32);

    /// A remote read of the simulated store.
    #[event(level = Info, keyword = READ | REMOTE)]
    pub fn remote_read(number: u32);

    /// The state that a session requested (capture state).
    #[event(level = Info, keyword = LIFECYCLE, opcode = DcStart)]
    pub fn state(events_failed: u64);
}

// Clients find the provider with the constants of the interface.
const _: () = {
    const fn same(one: Guid, other: Guid) -> bool {
        u128::from_le_bytes(one.to_bytes()) == u128::from_le_bytes(other.to_bytes())
    }
    assert!(same(provider::ID, guid_of_name!(PROVIDER_NAME)));
    assert!(same(provider::GROUP, guid!(PROVIDER_GROUP)));
    assert!(provider::REQUEST.bits() == keyword::REQUEST);
    assert!(provider::POWER.bits() == keyword::POWER);
    assert!(provider::TIMER.bits() == keyword::TIMER);
    assert!(provider::LIFECYCLE.bits() == keyword::LIFECYCLE);
    assert!(provider::LOAD.bits() == keyword::LOAD);
    assert!(provider::READ.bits() == keyword::READ);
    assert!(provider::LOCAL.bits() == keyword::LOCAL);
    assert!(provider::REMOTE.bits() == keyword::REMOTE);
};

/// The number of bytes of a write in its event.
const MAX_LOGGED_BYTES: usize = 16;

/// The type of the trait that contains the tag from the registry.
const TAG_TRAIT: u8 = 130;

/// The type of the trait that contains the name of the driver's service, which is known only at run
/// time.
const SERVICE_TRAIT: u8 = 129;

/// Registers the provider, with the name of the driver's service and the tag from the registry as
/// traits, both in UTF-16. IRQL: `PASSIVE_LEVEL`.
///
/// # Safety
///
/// The driver must call [`unregister`] before it is unloaded, even if `DriverEntry` fails.
pub unsafe fn register(registry_path: UnicodeString<'_>, tag: &[u16]) {
    const SEPARATOR: u16 = b'\\' as u16;
    let service = registry_path.units().rsplit(|unit| *unit == SEPARATOR).next();
    let mut traits = *provider::PROVIDER.traits();
    let mut added = 0_u32;
    let mut push = |kind, bytes| match traits.push(kind, bytes) {
        Ok(()) => added = added.saturating_add(1),
        Err(error) => {
            print(&error);
            record::traits_left_out(1);
        }
    };
    push(SERVICE_TRAIT, service.unwrap_or_default().as_bytes());
    if !tag.is_empty() {
        push(TAG_TRAIT, tag.as_bytes());
    }
    // SAFETY: the caller guarantees that the provider is unregistered.
    let mut registered = unsafe { provider::PROVIDER.register_with(&traits) };
    if let Err(error @ RegisterError::NoPool(_)) = registered {
        print(&error);
        record::traits_left_out(added);
        // The declared traits are constants, so they need no pool.
        // SAFETY: as above.
        registered = unsafe { provider::register() };
    }
    record::registration(registered);
    match registered {
        Ok(Registered::Complete) => {}
        Ok(Registered::Incomplete(refusals)) => print(&refusals),
        Err(error) => print(&error),
    }
}

/// Prints an error in the kernel debugger.
fn print(error: &dyn Display) {
    debug_print(format_args!("etw_sample_driver: {error}"));
}

/// Unregisters the provider. IRQL: `PASSIVE_LEVEL`.
pub fn unregister() {
    if let Err(error) = provider::unregister() {
        print(&error);
    }
}

/// Returns the counters of the events and the enable state of the provider. IRQL: any.
pub fn statistics() -> Statistics {
    let provider = &provider::PROVIDER;
    let failures = provider.failures();
    let wanted = provider.enable_info();
    Statistics {
        events_failed: failures.total(),
        failed_without_memory: failures.with_status(NtStatus(STATUS_NO_MEMORY)),
        failed_for_a_buffer: failures.with_status(NtStatus(STATUS_BUFFER_OVERFLOW)),
        failed_for_size: failures.with_status(NtStatus(STATUS_INTEGER_OVERFLOW)),
        events_cut: failures.cut(),
        notifications: record::notifications(),
        enabled: u32::from(wanted.is_some()),
        level: wanted.map_or(0, |wanted| u32::from(wanted.level.0)),
        match_any: wanted.map_or(0, |wanted| wanted.match_any.bits()),
        match_all: wanted.map_or(0, |wanted| wanted.match_all.bits()),
        registration: record::outcome_of_registration(),
        first_notifications: record::first_notifications(),
        ..Statistics::default()
    }
}

/// Counts and records a notification.
fn count_notification(_provider: &Provider, notification: &Notification<'_>) {
    record::notification(notification);
}

/// Writes the state that a session requested.
fn capture_state(provider: &Provider, notification: &Notification<'_>) {
    count_notification(provider, notification);
    if let Control::CaptureState(_) = notification.control {
        emit!(provider::state(provider.failures().total()));
    }
}

/// Returns a request's result as two fields: the number of bytes and the status.
const fn split(result: Result<usize, NTSTATUS>) -> (usize, NtStatus) {
    match result {
        Ok(bytes) => (bytes, NtStatus(STATUS_SUCCESS)),
        Err(status) => (0, NtStatus(status)),
    }
}

/// Writes the event of a completed read request.
pub fn read(requested: usize, result: Result<usize, NTSTATUS>) {
    let (returned, status) = split(result);
    emit!(provider::read(requested, returned, status));
}

/// Writes the event of a completed write request.
pub fn write(length: usize, result: Result<usize, NTSTATUS>) {
    emit!(provider::write(length, split(result).1));
}

/// Writes an event with the first bytes of a write.
pub fn write_data(data: &[u8]) {
    emit!(provider::write_data(data.get(..MAX_LOGGED_BYTES).unwrap_or(data)));
}

/// Starts a device control request's part of the activity that its sender passed or, if the sender
/// passed none, an activity related to the sender thread's activity in the kernel.
/// [`device_control_stopped`] ends either. IRQL: `APC_LEVEL` or below.
pub fn device_control_started(code: ULONG, sender: Option<ActivityId>) -> Activity {
    if let Some(sender) = sender {
        emit!(provider::device_control_start(code), activity = sender);
        return Activity::continuing(sender);
    }
    if !provider::device_control_start::is_enabled() {
        return Activity::NONE;
    }
    let activity = Activity::from_thread().unwrap_or_default();
    emit!(provider::device_control_start(code), starts = activity);
    activity
}

/// Ends the activity of a device control request, on any thread. IRQL: `DISPATCH_LEVEL` or below.
pub fn device_control_stopped(activity: Activity, code: ULONG, result: Result<usize, NTSTATUS>) {
    let (returned, status) = split(result);
    if result.is_err() {
        emit!(provider::bad_request(code, status), activity = activity.id());
    }
    emit!(provider::device_control_stop(code, returned, status), activity = activity.id());
}

/// Writes the event of the DPC that processes a device control request. IRQL: `DISPATCH_LEVEL`.
pub fn dpc_ran(activity: Activity) {
    emit!(provider::dpc_ran(), activity = activity.id());
}

/// Writes the event of a timer tick. IRQL: `DISPATCH_LEVEL`. The tick may interrupt any thread, so
/// the event must not have that thread's activity.
pub fn timer_ticked(ticks: u64) {
    emit!(provider::timer_ticked(ticks), activity = ActivityId::NONE);
}
