//! Events with handles and names.

use wdk_sys::{NTSTATUS, PVOID, STATUS_TIMEOUT};

use crate::{
    call::{NULL, call, same},
    names::{with_attributes, with_string},
    registry::common::close,
};

const ALL: u64 = 0x1F_0003;
const NAME: &[u8] = br"\BaseNamedObjects\WdkEtwTest";

/// Creates an event. Returns the status and the handle.
fn create(name: &[u8], flags: u64, kind: u64, state: u64) -> (NTSTATUS, PVOID) {
    let mut handle = NULL;
    let status = with_attributes(NULL, name, flags, |attributes| {
        call!(ZwCreateEvent, &mut handle, ALL, attributes, kind, state)
    });
    (status, handle)
}

/// Opens an event. Returns the status and the handle.
fn open(name: &[u8], access: u64) -> (NTSTATUS, PVOID) {
    let mut handle = NULL;
    let status = with_attributes(NULL, name, 0x240, |attributes| {
        call!(ZwOpenEvent, &mut handle, access, attributes)
    });
    (status, handle)
}

/// Polls an event without waiting.
fn look(handle: PVOID) -> NTSTATUS {
    let mut timeout = 0_u64;
    call!(ZwWaitForSingleObject, handle, 0, &mut timeout)
}

pub fn run() {
    unnamed();
    named();
    references();
    of_io_manager();
}

fn unnamed() {
    let mut handle = NULL;
    // A wait that a synchronization event satisfies resets the event.
    same!(call!(ZwCreateEvent, &mut handle, ALL, NULL, 1, 1), 0);
    same!(look(handle), 0);
    same!(look(handle), STATUS_TIMEOUT);
    let mut previous = 9_u32;
    same!(call!(ZwSetEvent, handle, &mut previous), 0);
    same!(previous, 0);
    same!(call!(ZwSetEvent, handle, &mut previous), 0);
    same!(previous, 1);
    same!(call!(ZwWaitForSingleObject, handle, 0, NULL), 0);
    let mut soon = -10_000_i64;
    same!(call!(ZwWaitForSingleObject, handle, 0, &mut soon), STATUS_TIMEOUT);
    close(handle);
    same!(call!(ZwSetEvent, handle, NULL), 0xC000_0008_u32);
    same!(call!(ZwCreateEvent, &mut handle, ALL, NULL, 2, 0), 0xC000_00F2_u32);
    // The handle is of another type.
    let (_, key) = crate::registry::common::open(NULL, br"\Registry\Machine\System", 1);
    same!(call!(ZwSetEvent, key, NULL), 0xC000_0024_u32);
    same!(look(key), 0xC000_0024_u32);
    close(key);
}

fn named() {
    same!(open(NAME, ALL).0, 0xC000_0034_u32);
    same!(create(b"Relative", 0x240, 0, 0).0, 0xC000_003B_u32);
    same!(create(br"\Nowhere\Event", 0x240, 0, 0).0, 0xC000_003A_u32);
    let (status, first) = create(NAME, 0x240, 0, 0);
    same!(status, 0);
    same!(create(NAME, 0x240, 0, 0).0, 0xC000_0035_u32);
    // OBJ_OPENIF
    let (status, second) = create(NAME, 0x2C0, 0, 1);
    same!(status, 0x4000_0000);
    same!(look(second), STATUS_TIMEOUT);
    let (status, reader) = open(br"\basenamedobjects\WDKETWTEST", 0x10_0001);
    same!(status, 0);
    // A handle's rights do not restrict drivers.
    same!(call!(ZwSetEvent, reader, NULL), 0);
    same!(call!(ZwSetEvent, first, NULL), 0);
    same!(look(reader) == 0 && look(reader) == 0, true);
    // The name exists as long as the event has a handle.
    close(first);
    close(second);
    same!(open(NAME, ALL).0, 0);
    let (_, last) = open(NAME, 0x10_0001);
    close(last);
    close(reader);
    // One handle from the check above is still open.
    same!(create(NAME, 0x240, 0, 0).0, 0xC000_0035_u32);
}

/// A reference keeps an event that has no handles.
fn references() {
    let (_, handle) = create(br"\KernelObjects\Kept", 0x240, 0, 0);
    let mut event = NULL;
    same!(call!(ObReferenceObjectByHandle, handle, ALL, NULL, 0, &mut event, NULL), 0);
    close(handle);
    same!(open(br"\KernelObjects\Kept", ALL).0, 0xC000_0034_u32);
    same!(call!(KeReadStateEvent, event), 0);
    call!(KeSetEvent, event, 0, 0);
    same!(call!(KeReadStateEvent, event), 1);
    call!(ObfDereferenceObject, event);
}

fn of_io_manager() {
    let mut handles = [NULL; 2];
    let [one, two] = &mut handles;
    with_string(br"\BaseNamedObjects\Io", |name| {
        let event = call!(IoCreateNotificationEvent, name, one);
        same!(event.is_null(), false);
        same!(call!(KeReadStateEvent, event), 1);
        call!(KeClearEvent, event);
        // The second call returns the first call's event.
        same!(call!(IoCreateSynchronizationEvent, name, two), event);
        same!(call!(KeReadStateEvent, event), 0);
    });
    for handle in handles {
        close(handle);
    }
    with_string(br"\Nowhere\Io", |name| {
        same!(call!(IoCreateSynchronizationEvent, name, &mut handles), 0);
    });
}
