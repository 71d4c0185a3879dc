//! WMI events: the driver registers for events, and fires them itself.

use core::sync::atomic::{AtomicU64, Ordering};

use wdk_sys::{
    NTSTATUS, PVOID, STATUS_ACCESS_DENIED, STATUS_WMI_GUID_NOT_FOUND, WMI_NOTIFICATION_CALLBACK,
};

use crate::{
    call::{NULL, call, driver, field, pointer, same, set_field},
    dispatcher::delay,
    plug_and_play::number,
    registry,
    timers::irql,
};

const GUID: [u64; 2] = [0x4E1C_79A5_5A0D_31F3, 0x9DE3_7C41_06B8_22A7];
const OTHER: [u64; 2] = [3, 4];
const NOTIFICATION: u64 = 4;
const QUERY: u64 = 1;

/// The contexts of the callbacks that were called, each in four bits.
static CALLED: AtomicU64 = AtomicU64::new(0);

/// The callback for events.
unsafe extern "C" fn fired(node: PVOID, context: PVOID) {
    same!(irql(), 0);
    same!(field::<u32>(node, 0), 52);
    same!(field::<u32>(node, 4), 7);
    same!(field::<[u64; 2]>(node, 24) == GUID, true);
    same!(field::<u32>(node, 48), 0x1234_5678);
    let before = CALLED.load(Ordering::Relaxed);
    CALLED.store(before << 4 | context as u64, Ordering::Relaxed);
}

/// Lets the kernel's threads run. Returns the contexts of the callbacks that were called.
fn called() -> u64 {
    delay(-10_000);
    CALLED.swap(0, Ordering::Relaxed)
}

fn open(guid: &[u64; 2], access: u64, object: &mut PVOID) -> NTSTATUS {
    let guid = core::ptr::from_ref(guid);
    call!(IoWMIOpenBlock, guid, access, object)
}

/// Fires an event with 4 bytes of data. WMI frees the event's block.
fn fire(guid: &[u64; 2], flags: u32) -> NTSTATUS {
    let node = call!(ExAllocatePool2, 0x40, 52, u32::from_le_bytes(*b"Wmi "));
    for (offset, value) in [(0, 52), (4, 7), (44, flags), (48, 0x1234_5678)] {
        set_field(node, offset, value);
    }
    set_field(node, 24, *guid);
    let status = call!(IoWMIWriteEvent, node);
    if status != 0 {
        call!(ExFreePool, node);
    }
    status
}

/// `WNODE_FLAG_EVENT_ITEM | WNODE_FLAG_SINGLE_INSTANCE`.
const EVENT: u32 = 0x82;

pub fn run() {
    let mut first = pointer(1);
    // Data blocks of other drivers cannot be read.
    same!(open(&GUID, QUERY, &mut first), STATUS_WMI_GUID_NOT_FOUND);
    same!(first, 0);
    same!(open(&GUID, 0x20, &mut first), STATUS_ACCESS_DENIED);
    same!(open(&GUID, NOTIFICATION, &mut first), 0);
    // No callback is set yet.
    same!(fire(&GUID, EVENT), 0);
    same!(called(), 0);
    let callback: WMI_NOTIFICATION_CALLBACK = Some(fired);
    let set = |object: PVOID, context: PVOID| {
        call!(IoWMISetNotificationCallback, object, callback, context)
    };
    same!(set(first, pointer(1)), 0);
    same!(set(first, pointer(1)), 0xC000_0001_u32);
    let mut second = NULL;
    same!(open(&GUID, NOTIFICATION, &mut second), 0);
    same!(set(second, pointer(2)), 0);
    same!(fire(&GUID, 0), 0xC000_000D_u32);
    same!(fire(&OTHER, EVENT), 0);
    same!(called(), 0);
    // At DISPATCH_LEVEL, the callbacks wait until a thread runs them.
    same!(fire(&GUID, EVENT), 0);
    let before = call!(KfRaiseIrql, 1);
    same!(CALLED.load(Ordering::Relaxed), 0);
    call!(KeLowerIrql, before);
    let seen = called();
    same!(seen == 0x12 || seen == 0x21, true);
    call!(ObfDereferenceObject, first);
    same!(fire(&GUID, EVENT), 0);
    same!(called(), 2);
    call!(ObfDereferenceObject, second);
    providers();
}

/// Each device has its own id.
fn providers() {
    let mut devices = [NULL; 2];
    let ids = devices.each_mut().map(|device| {
        call!(IoCreateDevice, driver(), 0, NULL, 0x22, 0, 0, &mut *device);
        call!(IoWMIDeviceObjectToProviderId, *device)
    });
    same!(ids[0] != 0 && ids[0] != ids[1], true);
    same!(call!(IoWMIDeviceObjectToProviderId, devices[0]), ids[0]);
    for device in devices {
        call!(IoDeleteDevice, device);
    }
}

/// Leaves a data block object open.
pub fn left() {
    let mut object = NULL;
    same!(open(&GUID, NOTIFICATION, &mut object), 0);
    wdk::println!("left {:x}", object.addr());
}

/// Releases the object that another driver left. The test has set the object's address.
pub fn release_left() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\fault-wmi-release\Parameters";
    let (status, key) = registry::common::open(NULL, path, registry::common::READ);
    same!(status, 0);
    let half = |name: &[u8]| number(key, name) as usize;
    call!(ObfDereferenceObject, pointer(half(b"High") << 32 | half(b"Low")));
}

/// Fires an event whose memory WMI cannot free, and waits.
pub fn no_block() {
    let mut event = [0_u32; 13];
    event[0] = 52;
    event[11] = EVENT;
    same!(call!(IoWMIWriteEvent, &mut event), 0);
    same!(called(), 0);
}

/// Sets a callback for an object that is not a data block.
pub fn wrong_object() {
    call!(IoWMISetNotificationCallback, driver(), Some(fired), NULL);
}
