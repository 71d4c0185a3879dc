//! Events with handles and names.

use crate::{
    call::{at, call, low, same},
    names::{with_attributes, with_string},
};

const ALL: u64 = 0x1F_0003;
const NAME: &[u8] = br"\BaseNamedObjects\WdkEtwTest";
const TIMEOUT: u32 = 0x102;

/// Creates an event. Returns the status and the handle.
fn create(name: &[u8], flags: u64, kind: u64, state: u64) -> (u32, u64) {
    let mut handle = 0_u64;
    let status = with_attributes(0, name, flags, |attributes| {
        call!("ZwCreateEvent", at(&mut handle), ALL, attributes, kind, state)
    });
    (low(status), handle)
}

/// Opens an event. Returns the status and the handle.
fn open(name: &[u8], access: u64) -> (u32, u64) {
    let mut handle = 0_u64;
    let status = with_attributes(0, name, 0x240, |attributes| {
        call!("ZwOpenEvent", at(&mut handle), access, attributes)
    });
    (low(status), handle)
}

/// Polls an event without waiting.
fn look(handle: u64) -> u32 {
    let mut timeout = 0_u64;
    low(call!("ZwWaitForSingleObject", handle, 0, at(&mut timeout)))
}

fn close(handle: u64) {
    same!(low(call!("ZwClose", handle)), 0);
}

pub fn run() {
    unnamed();
    named();
    references();
    of_io_manager();
}

fn unnamed() {
    let mut handle = 0_u64;
    // A wait that a synchronization event satisfies resets the event.
    same!(low(call!("ZwCreateEvent", at(&mut handle), ALL, 0, 1, 1)), 0);
    same!(look(handle), 0);
    same!(look(handle), TIMEOUT);
    let mut previous = 9_u32;
    same!(low(call!("ZwSetEvent", handle, at(&mut previous))), 0);
    same!(previous, 0);
    same!(low(call!("ZwSetEvent", handle, at(&mut previous))), 0);
    same!(previous, 1);
    same!(low(call!("ZwWaitForSingleObject", handle, 0, 0)), 0);
    let mut soon = -10_000_i64;
    same!(low(call!("ZwWaitForSingleObject", handle, 0, at(&mut soon))), TIMEOUT);
    close(handle);
    same!(low(call!("ZwSetEvent", handle, 0)), 0xC000_0008);
    same!(low(call!("ZwCreateEvent", at(&mut handle), ALL, 0, 2, 0)), 0xC000_00F2);
    // The handle is of another type.
    let (_, key) = crate::registry::common::open(0, br"\Registry\Machine\System", 1);
    same!(low(call!("ZwSetEvent", key, 0)), 0xC000_0024);
    same!(look(key), 0xC000_0024);
    close(key);
}

fn named() {
    same!(open(NAME, ALL).0, 0xC000_0034);
    same!(create(b"Relative", 0x240, 0, 0).0, 0xC000_003B);
    same!(create(br"\Nowhere\Event", 0x240, 0, 0).0, 0xC000_003A);
    let (status, first) = create(NAME, 0x240, 0, 0);
    same!(status, 0);
    same!(create(NAME, 0x240, 0, 0).0, 0xC000_0035);
    // OBJ_OPENIF
    let (status, second) = create(NAME, 0x2C0, 0, 1);
    same!(status, 0x4000_0000);
    same!(look(second), TIMEOUT);
    let (status, reader) = open(br"\basenamedobjects\WDKETWTEST", 0x10_0001);
    same!(status, 0);
    // A handle's rights do not restrict drivers.
    same!(low(call!("ZwSetEvent", reader, 0)), 0);
    same!(low(call!("ZwSetEvent", first, 0)), 0);
    same!(look(reader) == 0 && look(reader) == 0, true);
    // The name exists as long as the event has a handle.
    close(first);
    close(second);
    same!(open(NAME, ALL).0, 0);
    let (_, last) = open(NAME, 0x10_0001);
    close(last);
    close(reader);
    // One handle from the check above is still open.
    same!(create(NAME, 0x240, 0, 0).0, 0xC000_0035);
}

/// A reference keeps an event that has no handles.
fn references() {
    let (_, handle) = create(br"\KernelObjects\Kept", 0x240, 0, 0);
    let mut event = 0_u64;
    let status = call!("ObReferenceObjectByHandle", handle, ALL, 0, 0, at(&mut event), 0);
    same!(low(status), 0);
    close(handle);
    same!(open(br"\KernelObjects\Kept", ALL).0, 0xC000_0034);
    same!(low(call!("KeReadStateEvent", event)), 0);
    call!("KeSetEvent", event, 0, 0);
    same!(low(call!("KeReadStateEvent", event)), 1);
    call!("ObfDereferenceObject", event);
}

fn of_io_manager() {
    let mut handles = [0_u64; 2];
    let [one, two] = &mut handles;
    with_string(br"\BaseNamedObjects\Io", |name| {
        let event = call!("IoCreateNotificationEvent", name, at(one));
        same!(event != 0, true);
        same!(low(call!("KeReadStateEvent", event)), 1);
        call!("KeClearEvent", event);
        // The second call returns the first call's event.
        same!(call!("IoCreateSynchronizationEvent", name, at(two)), event);
        same!(low(call!("KeReadStateEvent", event)), 0);
    });
    for handle in handles {
        close(handle);
    }
    with_string(br"\Nowhere\Io", |name| {
        same!(call!("IoCreateSynchronizationEvent", name, at(&mut handles)), 0);
    });
}
