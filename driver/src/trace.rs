//! Everything that this driver can say: its provider and its events.
//!
//! Events of the driver's and the device's life are in the manifest
//! (`inf/etw_sample_driver.man`); those about requests and the timer describe
//! themselves.

use etw_sample_interface::{PROVIDER_GROUP, PROVIDER_NAME, keyword};
use wdk_etw::{
    ActivityId, Channel, Control, Counted, Event, EventDataDescriptor, EventDescriptor, Hooks,
    Keyword, Level, Notification, NtStatus, Opcode, Provider, RegisterError, Registered,
    WriteOptions, field, guid_of_name, tracelogging, traits, write_event,
};
use wdk_sys::{NTSTATUS, STATUS_SUCCESS, ULONG};

static PROVIDER: Provider = Provider::new(
    guid_of_name!(PROVIDER_NAME),
    &traits!(PROVIDER_NAME, group = PROVIDER_GROUP, 128 => *b"sample"),
)
.with_hooks(Hooks {
    on_capture_state: Some(capture_state),
    ..Hooks::NONE
});

const REQUEST: Keyword = Keyword::from_bits(keyword::REQUEST);
const POWER: Keyword = Keyword::from_bits(keyword::POWER);
const TIMER: Keyword = Keyword::from_bits(keyword::TIMER);
const LIFECYCLE: Keyword = Keyword::from_bits(keyword::LIFECYCLE);

/// The manifest's tasks.
const DRIVER_TASK: u16 = 1;
const DEVICE_TASK: u16 = 2;

/// An event of the manifest.
const fn manifest(id: u16, task: u16, level: Level, keyword: Keyword) -> EventDescriptor {
    EventDescriptor::new(id, 0, level, keyword)
        .with_task(task)
        .with_channel(Channel::PROVIDER_METADATA)
}

static DRIVER_LOADED: Event = Event::manifest(
    manifest(1, DRIVER_TASK, Level::INFORMATION, LIFECYCLE).with_opcode(Opcode::START),
);
static DRIVER_UNLOADED: Event = Event::manifest(
    manifest(2, DRIVER_TASK, Level::INFORMATION, LIFECYCLE).with_opcode(Opcode::STOP),
);
static DRIVER_FAILED: Event = Event::manifest(manifest(3, DRIVER_TASK, Level::ERROR, LIFECYCLE));
static DEVICE_ADDED: Event =
    Event::manifest(manifest(4, DEVICE_TASK, Level::INFORMATION, LIFECYCLE));
static D0_ENTRY: Event = Event::manifest(manifest(5, DEVICE_TASK, Level::INFORMATION, POWER));
static D0_EXIT: Event = Event::manifest(manifest(6, DEVICE_TASK, Level::INFORMATION, POWER));

static FILE_CREATED: Event =
    Event::tracelogging(Level::VERBOSE, REQUEST, tracelogging!("FileCreated"));
static FILE_CLEANED_UP: Event =
    Event::tracelogging(Level::VERBOSE, REQUEST, tracelogging!("FileCleanedUp"));
static FILE_CLOSED: Event =
    Event::tracelogging(Level::VERBOSE, REQUEST, tracelogging!("FileClosed"));
static READ: Event = Event::tracelogging(
    Level::INFORMATION,
    REQUEST,
    tracelogging!(
        "Read",
        "Requested": field::U64,
        "Returned": field::U64,
        "Status": field::NTSTATUS
    ),
);
static WRITE: Event = Event::tracelogging(
    Level::INFORMATION,
    REQUEST,
    tracelogging!("Write", "Length": field::U64, "Status": field::NTSTATUS),
);
static WRITE_DATA: Event = Event::tracelogging(
    Level::VERBOSE,
    REQUEST,
    tracelogging!("WriteData", "Data": field::BINARY),
);
static DEVICE_CONTROL_START: Event = Event::tracelogging(
    Level::INFORMATION,
    REQUEST,
    tracelogging!("DeviceControl", "Code": field::HEX32),
)
.with_opcode(Opcode::START);
static DEVICE_CONTROL_STOP: Event = Event::tracelogging(
    Level::INFORMATION,
    REQUEST,
    tracelogging!(
        "DeviceControl",
        "Code": field::HEX32,
        "Returned": field::U64,
        "Status": field::NTSTATUS
    ),
)
.with_opcode(Opcode::STOP);
static BAD_REQUEST: Event = Event::tracelogging(
    Level::WARNING,
    REQUEST,
    tracelogging!("BadRequest", "Code": field::HEX32, "Status": field::NTSTATUS),
);
static DPC_RAN: Event = Event::tracelogging(Level::VERBOSE, REQUEST, tracelogging!("DpcRan"));
static TIMER_TICKED: Event = Event::tracelogging(
    Level::VERBOSE,
    TIMER,
    tracelogging!("TimerTicked", "Ticks": field::U64),
);
static STATE: Event = Event::tracelogging(
    Level::INFORMATION,
    LIFECYCLE,
    tracelogging!("State", "EventsFailed": field::U64),
)
.with_opcode(Opcode::DC_START);

/// The first bytes of what was written are enough to tell one write from another.
const SHOWN: usize = 16;

/// Registers the provider. IRQL: `PASSIVE_LEVEL`.
pub fn register() -> Result<(), RegisterError> {
    match PROVIDER.register()? {
        Registered::Complete => {}
        Registered::WithoutTraits(failure) => wdk::println!("etw_sample_driver: {failure}"),
    }
    Ok(())
}

/// Unregisters the provider. IRQL: `PASSIVE_LEVEL`.
pub fn unregister() {
    if let Err(error) = PROVIDER.unregister() {
        wdk::println!("etw_sample_driver: {error}");
    }
}

/// Events that ETW did not take.
pub fn events_failed() -> u64 {
    PROVIDER.failures().total()
}

/// The state that a session asked for.
fn capture_state(provider: &Provider, notification: &Notification<'_>) {
    if let Control::CaptureState(_) = notification.control {
        let failed = provider.failures().total();
        write_event!(
            PROVIDER,
            STATE,
            WriteOptions::new(),
            [EventDataDescriptor::of(&failed)]
        );
    }
}

/// The driver object was created.
pub fn driver_loaded() {
    write_event!(PROVIDER, DRIVER_LOADED, WriteOptions::new(), []);
}

/// The driver is about to go.
pub fn driver_unloaded() {
    write_event!(PROVIDER, DRIVER_UNLOADED, WriteOptions::new(), []);
}

/// Loading the driver or adding its device failed.
pub fn driver_failed(status: NTSTATUS) {
    write_event!(
        PROVIDER,
        DRIVER_FAILED,
        WriteOptions::new(),
        [EventDataDescriptor::of(&status)]
    );
}

/// The device was added.
pub fn device_added() {
    write_event!(PROVIDER, DEVICE_ADDED, WriteOptions::new(), []);
}

/// The device enters D0 from a state.
pub fn d0_entry(previous: i32) {
    write_event!(
        PROVIDER,
        D0_ENTRY,
        WriteOptions::new(),
        [EventDataDescriptor::of(&previous)]
    );
}

/// The device leaves D0 for a state.
pub fn d0_exit(target: i32) {
    write_event!(
        PROVIDER,
        D0_EXIT,
        WriteOptions::new(),
        [EventDataDescriptor::of(&target)]
    );
}

/// A file was opened.
pub fn file_created() {
    write_event!(PROVIDER, FILE_CREATED, WriteOptions::new(), []);
}

/// The last handle to a file was closed.
pub fn file_cleaned_up() {
    write_event!(PROVIDER, FILE_CLEANED_UP, WriteOptions::new(), []);
}

/// A file is gone.
pub fn file_closed() {
    write_event!(PROVIDER, FILE_CLOSED, WriteOptions::new(), []);
}

/// A request's result as two fields: bytes and status.
const fn split(result: Result<usize, NTSTATUS>) -> (u64, NtStatus) {
    match result {
        Ok(bytes) => (bytes as u64, NtStatus(STATUS_SUCCESS)),
        Err(status) => (0, NtStatus(status)),
    }
}

/// A read is done.
pub fn read(requested: usize, result: Result<usize, NTSTATUS>) {
    write_event!(
        PROVIDER,
        READ,
        WriteOptions::new(),
        [
            EventDataDescriptor::of(&(requested as u64)),
            EventDataDescriptor::of(&split(result).0),
            EventDataDescriptor::of(&split(result).1),
        ]
    );
}

/// A write is done.
pub fn write(length: usize, result: Result<usize, NTSTATUS>) {
    write_event!(
        PROVIDER,
        WRITE,
        WriteOptions::new(),
        [
            EventDataDescriptor::of(&(length as u64)),
            EventDataDescriptor::of(&split(result).1),
        ]
    );
}

/// What a write brings.
pub fn write_data(data: &[u8]) {
    write_event!(
        PROVIDER,
        WRITE_DATA,
        WriteOptions::new(),
        [
            Counted::bytes(data.get(..SHOWN).unwrap_or(data)).length(),
            Counted::bytes(data.get(..SHOWN).unwrap_or(data)).content(),
        ]
    );
}

/// A device control arrived: starts an activity, which ends with
/// [`device_control_stopped`].
pub fn device_control_started(code: ULONG) -> ActivityId {
    if !PROVIDER.may_want(Level::INFORMATION, REQUEST) {
        return ActivityId::NONE;
    }
    let activity = ActivityId::create().unwrap_or_default();
    write_event!(
        PROVIDER,
        DEVICE_CONTROL_START,
        from_sender(WriteOptions::new().activity(activity)),
        [EventDataDescriptor::of(&code)]
    );
    activity
}

/// Names what the sender of a request was doing, if it said so.
fn from_sender(options: WriteOptions) -> WriteOptions {
    match ActivityId::of_thread() {
        Ok(sender) if sender != ActivityId::NONE => options.related(sender),
        _ => options,
    }
}

/// A device control is done, on whatever thread. IRQL: `DISPATCH_LEVEL` or below.
pub fn device_control_stopped(activity: ActivityId, code: ULONG, result: Result<usize, NTSTATUS>) {
    if let Err(status) = result {
        write_event!(
            PROVIDER,
            BAD_REQUEST,
            WriteOptions::new().activity(activity),
            [
                EventDataDescriptor::of(&code),
                EventDataDescriptor::of(&status),
            ]
        );
    }
    write_event!(
        PROVIDER,
        DEVICE_CONTROL_STOP,
        WriteOptions::new().activity(activity),
        [
            EventDataDescriptor::of(&code),
            EventDataDescriptor::of(&split(result).0),
            EventDataDescriptor::of(&split(result).1),
        ]
    );
}

/// The DPC works on a device control. IRQL: `DISPATCH_LEVEL`.
pub fn dpc_ran(activity: ActivityId) {
    write_event!(
        PROVIDER,
        DPC_RAN,
        WriteOptions::new().activity(activity),
        []
    );
}

/// The timer ticked. IRQL: `DISPATCH_LEVEL`, on whatever thread was interrupted: the
/// event names no activity of that thread's.
pub fn timer_ticked(ticks: u64) {
    write_event!(
        PROVIDER,
        TIMER_TICKED,
        WriteOptions::new().activity(ActivityId::NONE),
        [EventDataDescriptor::of(&ticks),]
    );
}
