//! Device controls that query the framework about the device, its settings, and small objects.

use core::{ptr, slice};

use etw_driver_support::{made, nt, sized};
use wdk_sys::{
    DEVICE_REGISTRY_PROPERTY, KEY_READ, NTSTATUS, PLUGPLAY_REGKEY_DEVICE, STATUS_SUCCESS, ULONG,
    UNICODE_STRING, WDF_DEVICE_PNP_CAPABILITIES, WDF_DEVICE_POWER_POLICY_IDLE_SETTINGS,
    WDF_DEVICE_POWER_POLICY_WAKE_SETTINGS, WDF_DEVICE_STATE, WDF_DRIVER_VERSION_AVAILABLE_PARAMS,
    WDF_NO_OBJECT_ATTRIBUTES, WDFDEVICE, WDFKEY, WDFMEMORY, WDFREQUEST,
};

use crate::{
    commands,
    framework::{complete, counted, utf16, wdf},
};

const VALUE: [u16; 5] = utf16(b"Value");

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::WDM => print_objects(device),
        commands::SETTINGS => set(device),
        commands::KEYS => use_keys(device),
        commands::PROPERTIES => print_properties(device),
        commands::VERSION => print_version(device),
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

fn print_objects(device: WDFDEVICE) {
    let own = wdf!(WdfDeviceWdmGetDeviceObject, device);
    let attached = wdf!(WdfDeviceWdmGetAttachedDevice, device);
    let physical = wdf!(WdfDeviceWdmGetPhysicalDevice, device);
    let same = wdf!(WdfWdmDeviceGetWdfDeviceHandle, own) == device;
    let driver = wdf!(WdfDeviceGetDriver, device);
    let driver = wdf!(WdfDriverWdmGetDriverObject, driver);
    // SAFETY: the framework returns a device object that lives as long as the device.
    let object = unsafe { *own };
    // SAFETY: as above, for the next lower device.
    let lower = unsafe { *attached };
    // SAFETY: as above, for the driver.
    let first = unsafe { (*driver).DeviceObject };
    wdk::println!(
        "own type {} size {} stack {} flags {:x}",
        object.Type,
        object.Size,
        object.StackSize,
        object.Flags
    );
    let links = lower.AttachedDevice == own && object.DriverObject == driver && first == own;
    wdk::println!("same {same} links {links} stack {}", lower.StackSize);
    wdk::println!("physical is attached {}", physical == attached);
}

fn set(device: WDFDEVICE) {
    let mut idle = sized!(WDF_DEVICE_POWER_POLICY_IDLE_SETTINGS {
        IdleCaps: 1,
        DxState: 5,
        UserControlOfIdleSettings: 1,
        Enabled: 2,
        PowerUpIdleDeviceOnSystemWake: 2
    });
    let good = wdf!(WdfDeviceAssignS0IdleSettings, device, &raw mut idle);
    idle.DxState = 1;
    let bad_state = wdf!(WdfDeviceAssignS0IdleSettings, device, &raw mut idle);
    idle.Size = 3;
    let bad_size = wdf!(WdfDeviceAssignS0IdleSettings, device, &raw mut idle);
    wdk::println!("idle {good:x} {bad_state:x} {bad_size:x}");
    // The deepest state, D3 and D2.
    let [deepest, off, asleep] = [5, 4, 3].map(|state| {
        let mut idle = sized!(WDF_DEVICE_POWER_POLICY_IDLE_SETTINGS {
            IdleCaps: 2,
            DxState: state,
            UserControlOfIdleSettings: 1,
            Enabled: 2,
            PowerUpIdleDeviceOnSystemWake: 2
        });
        wdf!(WdfDeviceAssignS0IdleSettings, device, &raw mut idle)
    });
    wdk::println!("idle and wake {deepest:x} {off:x} {asleep:x}");
    let [deepest, off, asleep] = [5, 4, 3].map(|state| {
        let mut wake = sized!(WDF_DEVICE_POWER_POLICY_WAKE_SETTINGS {
            DxState: state,
            UserControlOfWakeSettings: 1,
            Enabled: 2
        });
        wdf!(WdfDeviceAssignSxWakeSettings, device, &raw mut wake)
    });
    wdk::println!("wake {deepest:x} {off:x} {asleep:x}");
    let stopped = wdf!(WdfDeviceStopIdleActual, device, 1, ptr::null_mut(), 0, c"".as_ptr());
    wdf!(WdfDeviceResumeIdleActual, device, ptr::null_mut(), 0, c"".as_ptr());
    wdk::println!("stop idle {stopped:x}");
    let mut state = sized!(WDF_DEVICE_STATE { DontDisplayInUI: 1 });
    wdf!(WdfDeviceSetDeviceState, device, &raw mut state);
    state.DontDisplayInUI = 0;
    wdf!(WdfDeviceGetDeviceState, device, &raw mut state);
    wdk::println!("state {} {}", state.DontDisplayInUI, state.Disabled);
    let mut capabilities = sized!(WDF_DEVICE_PNP_CAPABILITIES { Removable: 7 });
    wdf!(WdfDeviceSetPnpCapabilities, device, &raw mut capabilities);
    // Resumes without stopping first.
    wdf!(WdfDeviceResumeIdleActual, device, ptr::null_mut(), 0, c"".as_ptr());
}

fn use_keys(device: WDFDEVICE) {
    let mut key: WDFKEY = ptr::null_mut();
    let status = wdf!(
        WdfDeviceOpenRegistryKey, device, PLUGPLAY_REGKEY_DEVICE, KEY_READ,
        WDF_NO_OBJECT_ATTRIBUTES, &raw mut key
    );
    let name = counted(&VALUE);
    let mut number: ULONG = 0;
    let read = wdf!(WdfRegistryQueryULong, key, &raw const name, &raw mut number);
    let assigned = wdf!(WdfRegistryAssignULong, key, &raw const name, 1);
    let handle = wdf!(WdfRegistryWdmGetHandle, key);
    let flushed = nt!(ZwFlushKey, handle);
    wdf!(WdfRegistryClose, key);
    let closed = nt!(ZwFlushKey, handle);
    wdk::println!("key {status:x} {read:x} {number} {assigned:x} {flushed:x} {closed:x}");
}

/// Prints the ASCII characters in UTF-16 units.
fn print_units(what: &str, status: NTSTATUS, units: &[u16]) {
    let mut bytes = [0_u8; 64];
    for (byte, unit) in bytes.iter_mut().zip(units) {
        *byte = *unit as u8;
    }
    let text = core::str::from_utf8(&bytes[..units.len().min(bytes.len())]).unwrap_or("?");
    wdk::println!("{what} {status:x} {text}");
}

fn print_properties(device: WDFDEVICE) {
    let (status, memory) = made(|handle| {
        wdf!(
            WdfDeviceAllocAndQueryProperty,
            device,
            DEVICE_REGISTRY_PROPERTY::DevicePropertyEnumeratorName,
            wdk_sys::_POOL_TYPE::NonPagedPoolNx,
            WDF_NO_OBJECT_ATTRIBUTES,
            handle
        )
    });
    let mut size = 0;
    let buffer = wdf!(WdfMemoryGetBuffer, memory, &raw mut size);
    // SAFETY: the framework returned the buffer with this size, which is aligned for UTF-16.
    let units = unsafe { slice::from_raw_parts(buffer.cast::<u16>(), size / 2 - 1) };
    print_units("enumerator", status, units);
    let mut length: ULONG = 0;
    let short = wdf!(
        WdfDeviceQueryProperty,
        device,
        DEVICE_REGISTRY_PROPERTY::DevicePropertyHardwareID,
        2,
        (&raw mut size).cast(),
        &raw mut length
    );
    let missing = wdf!(
        WdfDeviceQueryProperty,
        device,
        DEVICE_REGISTRY_PROPERTY::DevicePropertyFriendlyName,
        0,
        ptr::null_mut(),
        &raw mut length
    );
    wdk::println!("short {short:x} missing {missing:x} {length}");
    print_keyed_properties(device);
}

/// Prints a property that the system provides, and sets, reads and deletes another.
fn print_keyed_properties(device: WDFDEVICE) {
    let key = |fmtid: wdk_sys::DEVPROPGUID, pid: u32| wdk_sys::DEVPROPKEY { fmtid, pid };
    let instance = key(
        wdk_sys::GUID {
            Data1: 0x78C3_4FC8,
            Data2: 0x104A,
            Data3: 0x4ACA,
            Data4: [0x9E, 0xA4, 0x52, 0x4D, 0x52, 0x99, 0x6E, 0x57],
        },
        256,
    );
    let own = key(wdk_sys::GUID { Data1: 7, ..Default::default() }, 2);
    let property =
        |key: &wdk_sys::DEVPROPKEY| sized!(wdk_sys::WDF_DEVICE_PROPERTY_DATA { PropertyKey: key });
    let (mut kind, mut memory): (u32, WDFMEMORY) = (0, ptr::null_mut());
    let status = wdf!(
        WdfDeviceAllocAndQueryPropertyEx,
        device,
        &mut property(&instance),
        wdk_sys::_POOL_TYPE::NonPagedPoolNx,
        WDF_NO_OBJECT_ATTRIBUTES,
        &raw mut memory,
        &raw mut kind
    );
    let mut size = 0;
    let buffer = wdf!(WdfMemoryGetBuffer, memory, &raw mut size);
    // SAFETY: the framework returned the buffer with this size, which is aligned for UTF-16.
    let units = unsafe { slice::from_raw_parts(buffer.cast::<u16>(), size / 2 - 1) };
    print_units("instance", status, units);
    let (mut value, mut length) = (0x1234_u32, 0);
    let mut query = |property: &mut wdk_sys::WDF_DEVICE_PROPERTY_DATA| {
        let mut read = 0_u32;
        let status = wdf!(
            WdfDeviceQueryPropertyEx,
            device,
            property,
            4,
            (&raw mut read).cast(),
            &raw mut length,
            &raw mut kind
        );
        (status, read, length, kind)
    };
    let (before, ..) = query(&mut property(&own));
    let set = |value: *mut u32| {
        wdf!(WdfDeviceAssignProperty, device, &mut property(&own), 7, 4, value.cast())
    };
    let status = set(&raw mut value);
    let (after, read, length, kind) = query(&mut property(&own));
    wdk::println!("keyed {before:x} {status:x} {after:x} {read:x} {length} {kind:x}");
    let status = set(ptr::null_mut());
    let (after, ..) = query(&mut property(&own));
    let (short, ..) = query(&mut wdk_sys::WDF_DEVICE_PROPERTY_DATA { Size: 8, ..property(&own) });
    wdk::println!("deleted {status:x} {after:x} {short:x}");
}

fn print_version(device: WDFDEVICE) {
    let driver = wdf!(WdfDeviceGetDriver, device);
    for minor in [31, 40] {
        let mut version =
            sized!(WDF_DRIVER_VERSION_AVAILABLE_PARAMS { MajorVersion: 1, MinorVersion: minor });
        let available = wdf!(WdfDriverIsVersionAvailable, driver, &raw mut version);
        wdk::println!("1.{minor} {available}");
    }
    let (_status, string) =
        made(|handle| wdf!(WdfStringCreate, ptr::null(), WDF_NO_OBJECT_ATTRIBUTES, handle));
    let status = wdf!(WdfDriverRetrieveVersionString, driver, string);
    let mut text = UNICODE_STRING::default();
    wdf!(WdfStringGetUnicodeString, string, &raw mut text);
    // SAFETY: a counted string has a buffer of its length.
    let units = unsafe { slice::from_raw_parts(text.Buffer, usize::from(text.Length) / 2) };
    print_units("version", status, units);
    wdf!(WdfObjectDelete, string.cast());
}
