//! WMI events: the driver registers for events, and fires them itself.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use crate::{
    call::{Routine, address, at, call, driver, low, same},
    devices::number,
    queues::irql,
    registry,
};

const GUID: [u64; 2] = [0x4E1C_79A5_5A0D_31F3, 0x9DE3_7C41_06B8_22A7];
const OTHER: [u64; 2] = [3, 4];
const NOTIFICATION: u64 = 4;
const QUERY: u64 = 1;
const NOT_FOUND: u32 = 0xC000_0295;
const DENIED: u32 = 0xC000_0022;

/// The contexts of the callbacks that were called, each in four bits.
static CALLED: AtomicU64 = AtomicU64::new(0);

/// Reads a field of an event.
const fn field<T: Copy>(node: u64, offset: u64) -> T {
    // SAFETY: the event has a header.
    unsafe { ((node + offset) as *const T).read_unaligned() }
}

/// The callback for events.
unsafe extern "C" fn fired(node: u64, context: u64) {
    same!(irql(), 0);
    same!(field::<u32>(node, 0), 52);
    same!(field::<u32>(node, 4), 7);
    same!(field::<[u64; 2]>(node, 24) == GUID, true);
    same!(field::<u32>(node, 48), 0x1234_5678);
    let before = CALLED.load(Ordering::Relaxed);
    CALLED.store(before << 4 | context, Ordering::Relaxed);
}

/// Lets the kernel's threads run. Returns the contexts of the callbacks that were called.
fn called() -> u64 {
    let mut time = -10_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut time));
    CALLED.swap(0, Ordering::Relaxed)
}

fn open(guid: &[u64; 2], access: u64, object: &mut u64) -> u32 {
    let guid = core::ptr::from_ref(guid) as u64;
    low(call!("IoWMIOpenBlock", guid, access, at(object)))
}

/// Fires an event with 4 bytes of data. WMI frees the event's block.
fn fire(guid: &[u64; 2], flags: u32) -> u32 {
    let node = call!("ExAllocatePool2", 0x40, 52, u32::from_le_bytes(*b"Wmi "));
    let write = |offset: u64, value: u32| {
        // SAFETY: the block is 52 bytes long.
        unsafe { ((node + offset) as *mut u32).write_unaligned(value) };
    };
    write(0, 52);
    write(4, 7);
    write(44, flags);
    write(48, 0x1234_5678);
    // SAFETY: as above.
    unsafe { ((node + 24) as *mut [u64; 2]).write_unaligned(*guid) };
    let status = low(call!("IoWMIWriteEvent", node));
    if status != 0 {
        call!("ExFreePool", node);
    }
    status
}

/// `WNODE_FLAG_EVENT_ITEM | WNODE_FLAG_SINGLE_INSTANCE`.
const EVENT: u32 = 0x82;

pub fn run() {
    let mut first = 1_u64;
    // Data blocks of other drivers cannot be read.
    same!(open(&GUID, QUERY, &mut first), NOT_FOUND);
    same!(first, 0);
    same!(open(&GUID, 0x20, &mut first), DENIED);
    same!(open(&GUID, NOTIFICATION, &mut first), 0);
    // No callback is set yet.
    same!(fire(&GUID, EVENT), 0);
    same!(called(), 0);
    let callback = address(fired as *const c_void);
    let set = |object: u64, context: u64| {
        low(call!("IoWMISetNotificationCallback", object, callback, context))
    };
    same!(set(first, 1), 0);
    same!(set(first, 1), 0xC000_0001);
    let mut second = 0_u64;
    same!(open(&GUID, NOTIFICATION, &mut second), 0);
    same!(set(second, 2), 0);
    same!(fire(&GUID, 0), 0xC000_000D);
    same!(fire(&OTHER, EVENT), 0);
    same!(called(), 0);
    // At DISPATCH_LEVEL, the callbacks wait until a thread runs them.
    let (raise, lower) = (Routine::find("KfRaiseIrql"), Routine::find("KeLowerIrql"));
    same!(fire(&GUID, EVENT), 0);
    let before = raise.call(&[1]) & 0xFF;
    same!(CALLED.load(Ordering::Relaxed), 0);
    lower.call(&[before]);
    let seen = called();
    same!(seen == 0x12 || seen == 0x21, true);
    call!("ObfDereferenceObject", first);
    same!(fire(&GUID, EVENT), 0);
    same!(called(), 2);
    call!("ObfDereferenceObject", second);
    providers();
}

/// Each device has its own id.
fn providers() {
    let mut devices = [0_u64; 2];
    let ids = devices.each_mut().map(|device| {
        call!("IoCreateDevice", driver(), 0, 0, 0x22, 0, 0, at(device));
        low(call!("IoWMIDeviceObjectToProviderId", *device))
    });
    same!(ids[0] != 0 && ids[0] != ids[1], true);
    same!(low(call!("IoWMIDeviceObjectToProviderId", devices[0])), ids[0]);
    for device in devices {
        call!("IoDeleteDevice", device);
    }
}

/// Leaves a data block object open.
pub fn left() {
    let mut object = 0_u64;
    same!(open(&GUID, NOTIFICATION, &mut object), 0);
    wdk::println!("left {object:x}");
}

/// Releases the object that another driver left. The test has set the object's address.
pub fn release_left() {
    let path = br"\Registry\Machine\System\CurrentControlSet\Services\fault-wmi-release\Parameters";
    let (status, key) = registry::common::open(0, path, registry::common::READ);
    same!(status, 0);
    let half = |name: &[u8]| u64::from(number(key, name));
    call!("ObfDereferenceObject", half(b"High") << 32 | half(b"Low"));
}

/// Fires an event whose memory WMI cannot free, and waits.
pub fn no_block() {
    let mut event = [0_u32; 13];
    event[0] = 52;
    event[11] = EVENT;
    same!(low(call!("IoWMIWriteEvent", at(&mut event))), 0);
    same!(called(), 0);
}

/// Sets a callback for an object that is not a data block.
pub fn wrong_object() {
    call!("IoWMISetNotificationCallback", driver(), 1, 0);
}
