//! A device's data in the Plug and Play manager: its keys, its interfaces and the interfaces' keys.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU64, Ordering},
};

use etw_driver_support::wdf;
use wdk_sys::{NTSTATUS, PWDFDEVICE_INIT, WDFDEVICE, WDFDRIVER};

use crate::{
    call::{Routine, address, at, call, low, same},
    names::{is_text, with_string},
    registry::common::{close, open},
};

const CLASS: [u64; 2] = [0x4E1C_79A5_5A0D_31F2, 0x9DE3_7C41_06B8_22A6];
const OTHER_CLASS: [u64; 2] = [1, 2];
const INVALID_REQUEST: u32 = 0xC000_0010;
const INVALID_PARAMETER: u32 = 0xC000_000D;
const NOT_FOUND: u32 = 0xC000_0034;
const EXISTS: u32 = 0x4000_0000;
const ALL: u64 = 0xF_003F;

/// A counted string that a routine allocated.
type Link = [u64; 2];

/// `EvtDriverDeviceAdd`.
pub extern "C" fn add(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let physical = wdf!(WdfFdoInitWdmGetPhysicalDevice, init) as u64;
    let mut early: Link = [0; 2];
    same!(register(physical, &CLASS, b"early", &mut early), 0);
    let mut device: WDFDEVICE = core::ptr::null_mut();
    let status =
        wdf!(WdfDeviceCreate, &raw mut init, wdk_sys::WDF_NO_OBJECT_ATTRIBUTES, &raw mut device);
    same!(status, 0);
    keys(physical);
    interfaces(physical, &mut early);
    driver_keys(device);
    reports(physical);
    wdk::println!("done {}", crate::call::checks());
    status
}

fn register(physical: u64, class: &[u64; 2], reference: &[u8], link: &mut Link) -> u32 {
    let class = core::ptr::from_ref(class) as u64;
    low(with_string(reference, |reference| {
        call!("IoRegisterDeviceInterface", physical, class, reference, at(link))
    }))
}

/// Opens a device's key.
fn open_key(physical: u64, kind: u64) -> (u32, u64) {
    let mut key = 0_u64;
    let status = call!("IoOpenDeviceRegistryKey", physical, kind, ALL, at(&mut key));
    (low(status), key)
}

/// Reads a `REG_DWORD` value.
pub fn number(key: u64, name: &[u8]) -> u32 {
    let (mut buffer, mut length) = ([0_u32; 4], 0_u32);
    with_string(name, |name| {
        call!("ZwQueryValueKey", key, name, 2, at(&mut buffer), 16, at(&mut length))
    });
    buffer[3]
}

/// The test sets `Hard` in the hardware key to 1, and `Soft` in the software key to 2.
fn keys(physical: u64) {
    let (status, hardware) = open_key(physical, 1);
    same!((status, number(hardware, b"Hard")) == (0, 1), true);
    let (status, software) = open_key(physical, 2);
    same!((status, number(software, b"Soft")) == (0, 2), true);
    let (status, profile) = open_key(physical, 5);
    same!((status, number(profile, b"Hard")) == (0, 0), true);
    same!(open_key(physical, 3).0, INVALID_PARAMETER);
    same!(open_key(0x1234, 1).0, INVALID_REQUEST);
    for key in [hardware, software, profile] {
        close(key);
    }
}

/// Counts the links in a list, and frees the list.
fn count(class: &[u64; 2], physical: u64, flags: u64) -> u32 {
    let class = core::ptr::from_ref(class) as u64;
    let mut list = 0_u64;
    same!(low(call!("IoGetDeviceInterfaces", class, physical, flags, at(&mut list))), 0);
    let mut links = 0;
    let mut at = list as *const u16;
    // SAFETY: the list is terminated by an empty string.
    while unsafe { *at } != 0 {
        links += 1;
        // SAFETY: each string is terminated by a zero.
        while unsafe { *at } != 0 {
            // SAFETY: the end of the string was not reached.
            at = unsafe { at.add(1) };
        }
        // SAFETY: each string is followed by another string or by the end.
        at = unsafe { at.add(1) };
    }
    call!("ExFreePool", list);
    links
}

fn set_state(link: &mut Link, state: u64) -> u32 {
    low(call!("IoSetDeviceInterfaceState", at(link), state))
}

fn interfaces(physical: u64, early: &mut Link) {
    let mut link: Link = [0; 2];
    same!(register(0x1234, &CLASS, b"", &mut link), INVALID_REQUEST);
    same!(register(physical, &CLASS, br"a\b", &mut link), INVALID_REQUEST);
    same!(register(physical, &CLASS, b"", &mut link), 0);
    let mut again: Link = [0; 2];
    same!(register(physical, &CLASS, b"", &mut again), EXISTS);
    same!(low(link[0] & 0xFFFF), low(again[0] & 0xFFFF));
    same!((early[0] & 0xFFFF) == (link[0] & 0xFFFF) + 12, true);
    // SAFETY: the routine allocated the name with this length.
    let start = unsafe { core::slice::from_raw_parts(link[1] as *const u8, 8) };
    same!(is_text(start, br"\??\"), true);

    // Two interfaces are registered; neither is enabled.
    same!(count(&CLASS, 0, 0), 0);
    same!(count(&CLASS, 0, 1), 2);
    same!(count(&CLASS, physical, 1), 2);
    same!(count(&OTHER_CLASS, 0, 1), 0);
    same!(set_state(&mut link, 0), NOT_FOUND);
    same!(set_state(&mut link, 1), 0);
    same!(set_state(&mut link, 1), EXISTS);
    // The device is active once it is started.
    same!(count(&CLASS, 0, 0), 0);
    let class = core::ptr::from_ref(&CLASS) as u64;
    let mut list = 1_u64;
    same!(low(call!("IoGetDeviceInterfaces", class, 0x1234, 0, at(&mut list))), INVALID_REQUEST);
    same!(list, 0);

    interface_key(&mut link);
    let of_interface = ["IoGetDeviceInterfacePropertyData", "IoSetDeviceInterfacePropertyData"];
    properties(at(&mut link), of_interface.map(Routine::find));
    let of_device = ["IoGetDevicePropertyData", "IoSetDevicePropertyData"].map(Routine::find);
    properties(physical, of_device);
    system_properties(physical, of_device[0]);
    let mut key = [0_u32; 5];
    same!(low(of_device[1].call(&[0x1234, at(&mut key), 0, 0, 7, 0, 0])), INVALID_REQUEST);
    for link in [&mut link, &mut again, early] {
        call!("RtlFreeUnicodeString", at(link));
    }
}

fn interface_key(link: &mut Link) {
    let mut key = 0_u64;
    let open = |link: u64, key: &mut u64| {
        low(call!("IoOpenDeviceInterfaceRegistryKey", link, ALL, at(key)))
    };
    same!(open(at(link), &mut key), 0);
    let mut value = 3_u32;
    with_string(b"Kept", |name| {
        same!(low(call!("ZwSetValueKey", key, name, 0, 4, at(&mut value), 4)), 0);
    });
    close(key);
    same!(open(at(link), &mut key), 0);
    same!(number(key, b"Kept"), 3);
    close(key);
    same!(with_string(br"\??\nothing", |link| open(link, &mut key)), NOT_FOUND);
    same!(with_string(b"nothing", |link| open(link, &mut key)), INVALID_PARAMETER);
}

/// Reads properties that the system itself provides: the instance path, the hardware ids and the class.
fn system_properties(physical: u64, get_routine: Routine) {
    const DEVICE: [u32; 4] = [0xA45C_254E, 0x4EFD_DF1C, 0xD167_2080, 0xE050_A846];
    const INSTANCE: [u32; 4] = [0x78C3_4FC8, 0x4ACA_104A, 0x4D52_A49E, 0x576E_9952];
    let mut bytes = [0_u8; 128];
    let mut get = |[a, b, c, d]: [u32; 4], id: u32| {
        let (mut size, mut kind) = (0_u32, 0_u32);
        let mut key = [a, b, c, d, id];
        let (buffer, room) = (at(&mut bytes), 128);
        let key = at(&mut key);
        let status =
            get_routine.call(&[physical, key, 0, 0, room, buffer, at(&mut size), at(&mut kind)]);
        (low(status), kind, bytes, size as usize)
    };
    let (status, kind, bytes, size) = get(INSTANCE, 256);
    same!((status, kind) == (0, 0x12), true);
    same!(is_text(&bytes[..10], b"ROOT\\") && bytes[size - 2..size] == [0, 0], true);
    let (status, kind, bytes, size) = get(DEVICE, 3);
    same!((status, kind) == (0, 0x2012), true);
    same!(bytes[size - 4..size] == [0; 4], true);
    let (status, kind, bytes, size) = get(DEVICE, 10);
    same!((status, kind, size) == (0, 0x0D, 16), true);
    same!(bytes[..4] == 0x4D36_E97D_u32.to_le_bytes(), true);
    same!(get(DEVICE, 99).0, NOT_FOUND);
}

/// Sets, reads and deletes a property of an interface or a device, with these routines.
fn properties(owner: u64, [get_routine, set_routine]: [Routine; 2]) {
    let mut key = [5_u32, 6, 7, 8, 2];
    let (mut value, mut read) = (0x1234_5678_u32, 0_u32);
    let (mut size, mut kind) = (0_u32, 0_u32);
    let mut get = |room: u64, key: u64| {
        let read = at(&mut read);
        let status =
            get_routine.call(&[owner, key, 0, 0, room, read, at(&mut size), at(&mut kind)]);
        (low(status), size, core::mem::take(&mut kind))
    };
    let key = at(&mut key);
    same!(get(4, key).0, NOT_FOUND);
    let set = |locale: u64, data: u64| low(set_routine.call(&[owner, key, locale, 0, 7, 4, data]));
    same!(set(0x400, at(&mut value)), 0xC000_0001);
    same!(set(0, at(&mut value)), 0);
    same!(get(3, key) == (0xC000_0023, 4, 7), true);
    same!(get(4, key) == (0, 4, 7), true);
    let (mut again, mut its_kind) = (0_u32, 0_u32);
    let without_size = [owner, key, 0, 0, 4, at(&mut again), 0, at(&mut its_kind)];
    same!(low(get_routine.call(&without_size)), 0);
    same!((again, its_kind) == (0x1234_5678, 7), true);
    same!(set(0, 0), 0);
    same!(get(4, key).0, NOT_FOUND);
    same!(read, 0x1234_5678);
}

/// The context of the last report about which all drivers were notified.
static REPORTED: AtomicU64 = AtomicU64::new(0);

/// Called when a change has been reported.
unsafe extern "C" fn reported(context: u64) {
    REPORTED.store(context, Ordering::Relaxed);
}

/// Reports changes of the device.
fn reports(physical: u64) {
    /// `TARGET_DEVICE_CUSTOM_NOTIFICATION` with 4 bytes of data: version and size, event, file,
    /// offset of the name, and data.
    const CUSTOM: [u32; 10] = [40 << 16 | 1, 7, 7, 7, 7, 0, 0, 0, u32::MAX, 0];
    let mut notification = CUSTOM;
    let report = |physical: u64, notification: &mut [u32; 10]| {
        let routine = address(reported as *const c_void);
        low(call!("IoReportTargetDeviceChangeAsynchronous", physical, at(notification), routine, 3))
    };
    same!(report(physical, &mut notification), 0x103);
    same!(REPORTED.load(Ordering::Relaxed), 0);
    let mut time = -10_000_i64;
    call!("KeDelayExecutionThread", 0, 0, at(&mut time));
    same!(REPORTED.load(Ordering::Relaxed), 3);
    same!(report(0x1234, &mut notification), INVALID_REQUEST);
    notification[0] = 40 << 16 | 2;
    same!(report(physical, &mut notification), INVALID_PARAMETER);
    same!(
        low(call!("IoReportTargetDeviceChange", physical, at(&mut notification))),
        INVALID_PARAMETER
    );
    // Only the system is allowed to report this event.
    notification[1..5].copy_from_slice(&[0xCB3A_4006, 0x11D0_46F0, 0x6000_8FB0, 0x3F05_1397]);
    same!(report(physical, &mut notification), INVALID_REQUEST);
}

/// Opens the driver's keys.
fn driver_keys(device: WDFDEVICE) {
    let object = wdf!(WdfDeviceWdmGetDeviceObject, device);
    // SAFETY: the framework's device has a driver object.
    let driver = unsafe { (*object).DriverObject } as u64;
    let mut key = 0_u64;
    let open_driver = |kind: u64, flags: u64, key: &mut u64| {
        low(call!("IoOpenDriverRegistryKey", driver, kind, ALL, flags, at(key)))
    };
    same!(open_driver(0, 0, &mut key), 0);
    same!(number(key, b"Number"), 42);
    close(key);
    for kind in [1, 2] {
        same!(open_driver(kind, 0, &mut key), 0);
        close(key);
    }
    same!(open_driver(3, 0, &mut key), INVALID_PARAMETER);
    same!(open_driver(0, 1, &mut key), INVALID_PARAMETER);
    // This opens the same key by its path.
    let (status, same) =
        open(0, br"\Registry\Machine\System\CurrentControlSet\Services\devices\Parameters", 1);
    same!((status, number(same, b"Number")) == (0, 42), true);
    close(same);
}
