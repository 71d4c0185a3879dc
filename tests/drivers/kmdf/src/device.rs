//! The device: its callbacks for Plug and Play and power, and its files.

use core::ptr;

use etw_driver_support::{check, guid, sized};
use wdk_sys::{
    GUID, NTSTATUS, PWDFDEVICE_INIT, STATUS_OBJECT_NAME_COLLISION, STATUS_SUCCESS,
    STATUS_UNSUCCESSFUL, WDF_FILEOBJECT_CONFIG, WDF_NO_OBJECT_ATTRIBUTES,
    WDF_PNPPOWER_EVENT_CALLBACKS, WDF_POWER_DEVICE_STATE, WDFCMRESLIST, WDFDEVICE, WDFDRIVER,
    WDFFILEOBJECT, WDFOBJECT, WDFREQUEST,
};

use crate::{
    bus, failing_starts,
    framework::{complete, counted, utf16, wdf},
    interrupt, mode, preprocessing, presentation, queues, wdm_dispatch, wdm_request,
};

/// `{5f8a2f0e-7d1c-4d6e-9a53-0c4b7c8f2a11}`.
static INTERFACE: GUID =
    guid(0x5f8a_2f0e, 0x7d1c, 0x4d6e, [0x9a, 0x53, 0x0c, 0x4b, 0x7c, 0x8f, 0x2a, 0x11]);

const LINK: [u16; 20] = utf16(br"\DosDevices\KmdfTest");

/// Callbacks that print their name and succeed.
macro_rules! printing {
    ($($name:ident($($type:ty),*) -> NTSTATUS;)*) => {$(
        extern "C" fn $name(_device: WDFDEVICE $(, _: $type)*) -> NTSTATUS {
            wdk::println!(stringify!($name));
            failing_starts::result_of(stringify!($name))
        }
    )*};
    ($($name:ident($type:ty);)*) => {$(
        extern "C" fn $name(_object: $type) {
            wdk::println!(stringify!($name));
        }
    )*};
}

printing! {
    release_hardware(WDFCMRESLIST) -> NTSTATUS;
    io_init() -> NTSTATUS;
    io_suspend() -> NTSTATUS;
    io_restart() -> NTSTATUS;
    query_stop() -> NTSTATUS;
}

extern "C" fn query_remove(_device: WDFDEVICE) -> NTSTATUS {
    wdk::println!("query_remove");
    if mode::refuses_removal() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }
}

printing! {
    io_flush(WDFDEVICE);
    io_cleanup(WDFDEVICE);
    surprise_removal(WDFDEVICE);
    device_cleanup(WDFOBJECT);
    device_destroy(WDFOBJECT);
    file_cleanup(WDFFILEOBJECT);
    file_close(WDFFILEOBJECT);
}

extern "C" fn prepare_hardware(
    _device: WDFDEVICE,
    _raw: WDFCMRESLIST,
    translated: WDFCMRESLIST,
) -> NTSTATUS {
    wdk::println!("prepare_hardware");
    interrupt::print_resources(translated);
    failing_starts::result_of("prepare_hardware")
}

extern "C" fn d0_entry(_device: WDFDEVICE, state: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    wdk::println!("d0_entry from {state}");
    failing_starts::result_of("d0_entry")
}

extern "C" fn d0_entry_post(_device: WDFDEVICE, _state: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    wdk::println!("d0_entry_post_interrupts");
    failing_starts::result_of("d0_entry_post_interrupts")
}

extern "C" fn d0_exit_pre(_device: WDFDEVICE, _state: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    wdk::println!("d0_exit_pre_interrupts");
    failing_starts::result_of("d0_exit_pre_interrupts")
}

extern "C" fn d0_exit(_device: WDFDEVICE, state: WDF_POWER_DEVICE_STATE) -> NTSTATUS {
    wdk::println!("d0_exit to {state}");
    failing_starts::result_of("d0_exit")
}

const extern "C" fn usage_notification(
    _device: WDFDEVICE,
    _kind: wdk_sys::WDF_SPECIAL_FILE_TYPE,
    _is_in_path: wdk_sys::BOOLEAN,
) -> NTSTATUS {
    STATUS_SUCCESS
}

extern "C" fn file_create(_device: WDFDEVICE, request: WDFREQUEST, _file: WDFFILEOBJECT) {
    wdk::println!("file_create");
    wdm_request::note_open(request);
    complete(request, STATUS_SUCCESS);
}

/// Registers the file callbacks.
pub fn configure_files(init: PWDFDEVICE_INIT) {
    let mut files = sized!(WDF_FILEOBJECT_CONFIG {
        EvtDeviceFileCreate: Some(file_create),
        EvtFileClose: Some(file_close),
        EvtFileCleanup: Some(file_cleanup),
        AutoForwardCleanupClose: wdk_sys::_WDF_TRI_STATE::WdfUseDefault,
        FileObjectClass: wdk_sys::_WDF_FILEOBJECT_CLASS::WdfFileObjectWdfCannotUseFsContexts
    });
    wdf!(WdfDeviceInitSetFileObjectConfig, init, &raw mut files, WDF_NO_OBJECT_ATTRIBUTES);
}

/// `EvtDriverDeviceAdd`.
pub extern "C" fn add(_driver: WDFDRIVER, mut init: PWDFDEVICE_INIT) -> NTSTATUS {
    let mut callbacks = sized!(WDF_PNPPOWER_EVENT_CALLBACKS {
        EvtDeviceD0Entry: Some(d0_entry),
        EvtDeviceD0EntryPostInterruptsEnabled: Some(d0_entry_post),
        EvtDeviceD0Exit: Some(d0_exit),
        EvtDeviceD0ExitPreInterruptsDisabled: Some(d0_exit_pre),
        EvtDevicePrepareHardware: Some(prepare_hardware),
        EvtDeviceReleaseHardware: Some(release_hardware),
        EvtDeviceSelfManagedIoCleanup: Some(io_cleanup),
        EvtDeviceSelfManagedIoFlush: Some(io_flush),
        EvtDeviceSelfManagedIoInit: Some(io_init),
        EvtDeviceSelfManagedIoSuspend: Some(io_suspend),
        EvtDeviceSelfManagedIoRestart: Some(io_restart),
        EvtDeviceSurpriseRemoval: Some(surprise_removal),
        EvtDeviceQueryRemove: Some(query_remove),
        EvtDeviceQueryStop: Some(query_stop)
    });
    if failing_starts::is_old() {
        // In an older version, the structure lacks the last callback.
        callbacks.Size -= size_of::<usize>() as u32;
        callbacks.EvtDeviceUsageNotificationEx = Some(usage_notification);
    }
    wdf!(WdfDeviceInitSetPnpPowerEventCallbacks, init, &raw mut callbacks);
    configure_files(init);
    if failing_starts::has_callers() {
        wdm_request::ask_for_callers(init);
    }
    bus::configure(init);
    preprocessing::configure(init);
    let mut attributes = presentation::of_device();
    attributes.EvtCleanupCallback = Some(device_cleanup);
    attributes.EvtDestroyCallback = Some(device_destroy);
    let mut device: WDFDEVICE = ptr::null_mut();
    check!(wdf!(WdfDeviceCreate, &raw mut init, &raw mut attributes, &raw mut device));
    let link = counted(&LINK);
    // Another device of this driver may have the link.
    let status = wdf!(WdfDeviceCreateSymbolicLink, device, &raw const link);
    if status != STATUS_OBJECT_NAME_COLLISION {
        check!(status);
    }
    check!(wdf!(WdfDeviceCreateDeviceInterface, device, &raw const INTERFACE, ptr::null()));
    check!(interrupt::create(device));
    check!(presentation::create_queue(device));
    check!(queues::create(device));
    wdm_dispatch::configure(device)
}
