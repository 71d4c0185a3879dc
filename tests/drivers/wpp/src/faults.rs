//! The actions of individual services: unusual calls and faults.

use core::{ffi::c_void, ptr, sync::atomic::Ordering};

use etw_driver_support::{Service, at_irql, nt};
use wdk_sys::{GUID, NTSTATUS, POOL_FLAG_NON_PAGED, POOL_FLAG_PAGED, POOL_FLAGS};

use crate::{
    control::{self, BLOCKS},
    messages::{self, FLAGS, MESSAGES, TIMESTAMP, trace_message},
    query,
};

const HIGH_LEVEL: u8 = 15;
const DISPATCH_LEVEL: u8 = 2;

/// Calls a function at the highest IRQL, and passes the IRQL to it.
pub fn at_high_level(body: impl FnOnce(u8)) {
    at_irql(HIGH_LEVEL, || body(HIGH_LEVEL));
}

fn allocate(flags: POOL_FLAGS, size: usize) -> *mut c_void {
    nt!(ExAllocatePool2, flags, size as u64, u32::from_le_bytes(*b"WppT"))
}

fn free(block: *mut c_void) {
    nt!(ExFreePool, block);
}

/// Returns the trace handle of the first set of flags.
fn logger() -> u64 {
    BLOCKS[0].logger.load(Ordering::Acquire)
}

fn say(what: &str, status: NTSTATUS) {
    wdk::println!("{what}: {status:#x}");
}

/// Writes a message with one argument.
fn write(logger: u64, flags: u32, guid: *const GUID, data: *const c_void, size: usize) -> NTSTATUS {
    // SAFETY: the argument has a size, and a null address ends the list. Errors are deliberate.
    unsafe { trace_message()(logger, flags, guid, 10, data, size, ptr::null::<c_void>()) }
}

fn byte(logger: u64, flags: u32) -> NTSTATUS {
    let byte = 7_u8;
    write(logger, flags, &raw const MESSAGES, ptr::from_ref(&byte).cast(), 1)
}

/// `EVENT_TRACE_HEADER` in the form for `IoWMIWriteEvent`.
#[repr(C)]
struct EventHeader {
    size: u16,
    field_types: u16,
    kind: u8,
    level: u8,
    version: u16,
    historical_context: u64,
    timestamp: i64,
    guid: GUID,
    client_context: u32,
    flags: u32,
    data: [u8; 4],
}

/// The header with the address of the GUID and the address of a field.
#[repr(C)]
struct EventOfFields {
    size: u16,
    field_types: u16,
    kind: u8,
    level: u8,
    version: u16,
    historical_context: u64,
    timestamp: i64,
    guid: *const GUID,
    unused: u64,
    client_context: u32,
    flags: u32,
    field: *const u8,
    length: u32,
    field_type: u32,
}

const TRACED_GUID: u32 = 0x0002_0000;
const USE_GUID_PTR: u32 = 0x0008_0000;
const USE_MOF_PTR: u32 = 0x0010_0000;

fn write_events(logger: u64) {
    let mut event = EventHeader {
        size: 52,
        field_types: 0,
        kind: 33,
        level: 3,
        version: 2,
        historical_context: logger,
        timestamp: 0,
        guid: control::GUIDS[1],
        client_context: 0,
        flags: TRACED_GUID,
        data: [1, 2, 3, 4],
    };
    let status = nt!(IoWMIWriteEvent, (&raw mut event).cast());
    say("event", status);
    event.historical_context = 77;
    let status = nt!(IoWMIWriteEvent, (&raw mut event).cast());
    say("event without a session", status);
    event.size = 40;
    let status = nt!(IoWMIWriteEvent, (&raw mut event).cast());
    say("event without a whole header", status);
    let field = *b"field";
    let mut event = EventOfFields {
        size: 64,
        field_types: 0,
        kind: 34,
        level: 4,
        version: 1,
        historical_context: logger,
        timestamp: 0,
        guid: &raw const control::GUIDS[1],
        unused: 0,
        client_context: 0,
        flags: TRACED_GUID | USE_GUID_PTR | USE_MOF_PTR,
        field: field.as_ptr(),
        length: field.len() as u32,
        field_type: 0,
    };
    let status = nt!(IoWMIWriteEvent, (&raw mut event).cast());
    say("event of fields", status);
}

/// A service's action on a session's handle.
type Action = fn(u64);

/// Runs the service's action after the registration, if it has one.
pub fn run(service: Service<'_>) {
    let all: [(&str, Action); 12] = [
        ("by-list", |logger| {
            say("by list", messages::by_list(logger));
        }),
        ("query", query::all),
        ("classic-events", write_events),
        ("no-session", |_| say("no session", byte(77, FLAGS))),
        ("unknown-flags", |logger| {
            byte(logger, FLAGS | 0x400);
        }),
        ("obsolete-flags", |logger| {
            byte(logger, FLAGS | messages::PERFORMANCE_TIMESTAMP);
        }),
        ("no-guid", |logger| {
            byte(logger, TIMESTAMP);
        }),
        ("null-guid", |logger| {
            let byte = 7_u8;
            write(logger, FLAGS, ptr::null(), ptr::from_ref(&byte).cast(), 1);
        }),
        ("large", |logger| {
            let block = allocate(POOL_FLAG_NON_PAGED, 70_000);
            say("large", write(logger, FLAGS, &raw const MESSAGES, block, 70_000));
            say("for a buffer", write(logger, FLAGS, &raw const MESSAGES, block, 5_000));
            free(block);
        }),
        ("user-space", |logger| {
            let nowhere = ptr::without_provenance(0x7FFE_0000);
            write(logger, FLAGS, &raw const MESSAGES, nowhere, 8);
        }),
        ("paged-at-dispatch", |logger| {
            let block = allocate(POOL_FLAG_PAGED, 64);
            at_irql(DISPATCH_LEVEL, || {
                write(logger, FLAGS, &raw const MESSAGES, block, 8);
            });
            free(block);
        }),
        ("control", |_| {
            for (what, action) in [
                ("register", 1),
                ("register again", 1),
                ("update", 4),
                ("reregister", 3),
                ("block", 5),
                ("no action", 9),
                ("deregister", 2),
                ("deregister again", 2),
                ("block nothing", 5),
            ] {
                say(what, control::control(0x8001_0000 | action));
            }
        }),
    ];
    if let Some(body) = service.find(&all) {
        body(logger());
    }
}
