//! A device's data in the Plug and Play manager: its keys, its interfaces and the interfaces' keys.

use core::sync::atomic::{AtomicU64, Ordering};

use etw_driver_support::wdf;
use wdk_sys::{
    NTSTATUS, PDEVICE_CHANGE_COMPLETE_CALLBACK, PVOID, PWDFDEVICE_INIT, STATUS_BUFFER_TOO_SMALL,
    STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_EXISTS,
    STATUS_OBJECT_NAME_NOT_FOUND, WDFDEVICE, WDFDRIVER,
};

use crate::{
    call::{NULL, at, call, pointer, same},
    dispatcher::delay,
    names::{is_text, with_string},
    registry::common::{close, open},
};

const CLASS: [u64; 2] = [0x4E1C_79A5_5A0D_31F2, 0x9DE3_7C41_06B8_22A6];
const OTHER_CLASS: [u64; 2] = [1, 2];
const ALL: u64 = 0xF_003F;

/// A counted string that a routine allocated.
type Link = [u64; 2];

/// `EvtDriverDeviceAdd`.
pub extern "C" fn add(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let physical = wdf!(WdfFdoInitWdmGetPhysicalDevice, init).cast();
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

fn register(physical: PVOID, class: &[u64; 2], reference: &[u8], link: &mut Link) -> NTSTATUS {
    let class = core::ptr::from_ref(class);
    with_string(reference, |reference| {
        call!(IoRegisterDeviceInterface, physical, class, reference, link)
    })
}

/// Opens a device's key.
fn open_key(physical: PVOID, kind: u64) -> (NTSTATUS, PVOID) {
    let mut key = NULL;
    let status = call!(IoOpenDeviceRegistryKey, physical, kind, ALL, &mut key);
    (status, key)
}

/// Reads a `REG_DWORD` value.
pub fn number(key: PVOID, name: &[u8]) -> u32 {
    let (mut buffer, mut length) = ([0_u32; 4], 0_u32);
    with_string(name, |name| call!(ZwQueryValueKey, key, name, 2, &mut buffer, 16, &mut length));
    buffer[3]
}

/// The test sets `Hard` in the hardware key to 1, and `Soft` in the software key to 2.
fn keys(physical: PVOID) {
    let (status, hardware) = open_key(physical, 1);
    same!((status, number(hardware, b"Hard")) == (0, 1), true);
    let (status, software) = open_key(physical, 2);
    same!((status, number(software, b"Soft")) == (0, 2), true);
    let (status, profile) = open_key(physical, 5);
    same!((status, number(profile, b"Hard")) == (0, 0), true);
    same!(open_key(physical, 3).0, STATUS_INVALID_PARAMETER);
    same!(open_key(pointer(0x1234), 1).0, STATUS_INVALID_PARAMETER);
    for key in [hardware, software, profile] {
        close(key);
    }
}

/// Counts the links in a list, and frees the list.
fn count(class: &[u64; 2], physical: PVOID, flags: u64) -> u32 {
    let class = core::ptr::from_ref(class);
    let mut list = NULL;
    same!(call!(IoGetDeviceInterfaces, class, physical, flags, &mut list), 0);
    let mut links = 0;
    let mut at = list.cast::<u16>();
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
    call!(ExFreePool, list);
    links
}

fn set_state(link: &mut Link, state: u64) -> NTSTATUS {
    call!(IoSetDeviceInterfaceState, link, state)
}

fn interfaces(physical: PVOID, early: &mut Link) {
    let mut link: Link = [0; 2];
    same!(register(pointer(0x1234), &CLASS, b"", &mut link), STATUS_INVALID_DEVICE_REQUEST);
    same!(register(physical, &CLASS, br"a\b", &mut link), STATUS_INVALID_DEVICE_REQUEST);
    same!(register(physical, &CLASS, b"", &mut link), 0);
    let mut again: Link = [0; 2];
    same!(register(physical, &CLASS, b"", &mut again), STATUS_OBJECT_NAME_EXISTS);
    same!(link[0] & 0xFFFF, again[0] & 0xFFFF);
    same!((early[0] & 0xFFFF) == (link[0] & 0xFFFF) + 12, true);
    // SAFETY: the routine allocated the name with this length.
    let start = unsafe { core::slice::from_raw_parts(link[1] as *const u8, 8) };
    same!(is_text(start, br"\??\"), true);

    // Two interfaces are registered; neither is enabled.
    same!(count(&CLASS, NULL, 0), 0);
    same!(count(&CLASS, NULL, 1), 2);
    same!(count(&CLASS, physical, 1), 2);
    same!(count(&OTHER_CLASS, NULL, 1), 0);
    same!(set_state(&mut link, 0), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(set_state(&mut link, 1), 0);
    same!(set_state(&mut link, 1), STATUS_OBJECT_NAME_EXISTS);
    // The device is active once it is started.
    same!(count(&CLASS, NULL, 0), 0);
    let class = core::ptr::from_ref(&CLASS);
    let mut list = pointer(1);
    same!(
        call!(IoGetDeviceInterfaces, class, pointer(0x1234), 0, &mut list),
        STATUS_INVALID_DEVICE_REQUEST
    );
    same!(list.is_null(), true);

    interface_key(&mut link);
    let of = at(&mut link);
    properties(
        |key, room, to, size, kind| {
            call!(IoGetDeviceInterfacePropertyData, of, key, 0, 0, room, to, size, kind)
        },
        |key, locale, data| call!(IoSetDeviceInterfacePropertyData, of, key, locale, 0, 7, 4, data),
    );
    let set = |device: PVOID, key: PVOID, locale: u32, size: u32, data: PVOID| {
        call!(IoSetDevicePropertyData, device, key, locale, 0, 7, size, data)
    };
    properties(
        |key, room, to, size, kind| {
            call!(IoGetDevicePropertyData, physical, key, 0, 0, room, to, size, kind)
        },
        |key, locale, data| set(physical, key, locale, 4, data),
    );
    system_properties(physical);
    same!(set(pointer(0x1234), at(&mut [0_u32; 5]), 0, 0, NULL), STATUS_INVALID_DEVICE_REQUEST);
    for link in [&mut link, &mut again, early] {
        call!(RtlFreeUnicodeString, link);
    }
}

fn interface_key(link: &mut Link) {
    let mut key = NULL;
    let open =
        |link: PVOID, key: &mut PVOID| call!(IoOpenDeviceInterfaceRegistryKey, link, ALL, key);
    same!(open(at(link), &mut key), 0);
    let mut value = 3_u32;
    with_string(b"Kept", |name| {
        same!(call!(ZwSetValueKey, key, name, 0, 4, &mut value, 4), 0);
    });
    close(key);
    same!(open(at(link), &mut key), 0);
    same!(number(key, b"Kept"), 3);
    close(key);
    same!(with_string(br"\??\nothing", |link| open(link, &mut key)), STATUS_OBJECT_NAME_NOT_FOUND);
    same!(with_string(b"nothing", |link| open(link, &mut key)), STATUS_INVALID_PARAMETER);
}

/// Reads properties that the system itself provides: the instance path, the hardware ids and the class.
fn system_properties(physical: PVOID) {
    const DEVICE: [u32; 4] = [0xA45C_254E, 0x4EFD_DF1C, 0xD167_2080, 0xE050_A846];
    const INSTANCE: [u32; 4] = [0x78C3_4FC8, 0x4ACA_104A, 0x4D52_A49E, 0x576E_9952];
    let mut bytes = [0_u8; 128];
    let mut get = |[a, b, c, d]: [u32; 4], id: u32| {
        let (mut size, mut kind) = (0_u32, 0_u32);
        let mut key = [a, b, c, d, id];
        let to = &mut bytes;
        let status =
            call!(IoGetDevicePropertyData, physical, &mut key, 0, 0, 128, to, &mut size, &mut kind);
        (status, kind, bytes, size as usize)
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
    same!(get(DEVICE, 99).0, STATUS_OBJECT_NAME_NOT_FOUND);
}

/// Sets, reads and deletes a property of an interface or a device. `get` receives the key, the size
/// and the address of the buffer, and the addresses of the required size and of the type; `set`
/// receives the key, the locale and the data.
fn properties(
    get_property: impl Fn(PVOID, u32, PVOID, *mut u32, *mut u32) -> NTSTATUS,
    set_property: impl Fn(PVOID, u32, PVOID) -> NTSTATUS,
) {
    let mut key = [5_u32, 6, 7, 8, 2];
    let (mut value, mut read) = (0x1234_5678_u32, 0_u32);
    let (mut size, mut kind) = (0_u32, 0_u32);
    let key = at(&mut key);
    let mut get = |room: u32, key: PVOID| {
        let status = get_property(key, room, at(&mut read), &raw mut size, &raw mut kind);
        (status, size, core::mem::take(&mut kind))
    };
    same!(get(4, key).0, STATUS_OBJECT_NAME_NOT_FOUND);
    let set = |locale: u32, data: PVOID| set_property(key, locale, data);
    same!(set(0x400, at(&mut value)), 0xC000_0001_u32);
    same!(set(0, at(&mut value)), 0);
    same!(get(3, key) == (STATUS_BUFFER_TOO_SMALL, 4, 7), true);
    same!(get(4, key) == (0, 4, 7), true);
    let (mut again, mut property_type) = (0_u32, 0_u32);
    let without_size =
        get_property(key, 4, at(&mut again), core::ptr::null_mut(), &raw mut property_type);
    same!(without_size, 0);
    same!((again, property_type) == (0x1234_5678, 7), true);
    same!(set(0, NULL), 0);
    same!(get(4, key).0, STATUS_OBJECT_NAME_NOT_FOUND);
    same!(read, 0x1234_5678);
}

/// The context of the last report about which all drivers were notified.
static REPORTED: AtomicU64 = AtomicU64::new(0);

/// Called when a change has been reported.
unsafe extern "C" fn reported(context: PVOID) {
    REPORTED.store(context as u64, Ordering::Relaxed);
}

/// Reports changes of the device.
fn reports(physical: PVOID) {
    /// `TARGET_DEVICE_CUSTOM_NOTIFICATION` with 4 bytes of data: version and size, event, file,
    /// offset of the name, and data.
    const CUSTOM: [u32; 10] = [40 << 16 | 1, 7, 7, 7, 7, 0, 0, 0, u32::MAX, 0];
    let mut notification = CUSTOM;
    let report = |physical: PVOID, notification: &mut [u32; 10]| {
        let routine: PDEVICE_CHANGE_COMPLETE_CALLBACK = Some(reported);
        call!(IoReportTargetDeviceChangeAsynchronous, physical, notification, routine, pointer(3))
    };
    same!(report(physical, &mut notification), 0x103);
    same!(REPORTED.load(Ordering::Relaxed), 0);
    delay(-10_000);
    same!(REPORTED.load(Ordering::Relaxed), 3);
    same!(report(pointer(0x1234), &mut notification), STATUS_INVALID_DEVICE_REQUEST);
    notification[0] = 40 << 16 | 2;
    same!(report(physical, &mut notification), STATUS_INVALID_PARAMETER);
    same!(call!(IoReportTargetDeviceChange, physical, &mut notification), STATUS_INVALID_PARAMETER);
    // Only the system is allowed to report this event.
    notification[1..5].copy_from_slice(&[0xCB3A_4006, 0x11D0_46F0, 0x6000_8FB0, 0x3F05_1397]);
    same!(report(physical, &mut notification), STATUS_INVALID_DEVICE_REQUEST);
}

/// Opens the driver's keys.
fn driver_keys(device: WDFDEVICE) {
    let object = wdf!(WdfDeviceWdmGetDeviceObject, device);
    // SAFETY: the framework's device has a driver object.
    let driver = unsafe { (*object).DriverObject };
    let mut key = NULL;
    let open_driver = |kind: u64, flags: u64, key: &mut PVOID| {
        call!(IoOpenDriverRegistryKey, driver, kind, ALL, flags, key)
    };
    same!(open_driver(0, 0, &mut key), 0);
    same!(number(key, b"Number"), 42);
    close(key);
    for kind in [1, 2] {
        same!(open_driver(kind, 0, &mut key), 0);
        close(key);
    }
    same!(open_driver(3, 0, &mut key), STATUS_INVALID_PARAMETER);
    same!(open_driver(0, 1, &mut key), STATUS_INVALID_PARAMETER);
    // This opens the same key by its path.
    let (status, same) =
        open(NULL, br"\Registry\Machine\System\CurrentControlSet\Services\devices\Parameters", 1);
    same!((status, number(same, b"Number")) == (0, 42), true);
    close(same);
}
