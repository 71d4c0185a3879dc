//! Device controls that use the kernel objects below the framework's objects, and WMI.

use core::{
    ffi::c_void,
    ptr, slice,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{guid, made, nt, sized};
use wdk_sys::{
    BOOLEAN, GUID, LARGE_INTEGER, NTSTATUS, PMDL, PVOID, STATUS_SUCCESS, ULONG,
    WDF_NO_OBJECT_ATTRIBUTES, WDF_WMI_INSTANCE_CONFIG, WDF_WMI_PROVIDER_CONFIG,
    WDF_WMI_PROVIDER_CONTROL, WDFDEVICE, WDFREQUEST, WDFWMIINSTANCE, WDFWMIPROVIDER,
};

use crate::{
    commands,
    framework::{complete, wdf},
};

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::LOWER => print_irp(request),
        commands::WMI => use_wmi(device),
        _ => return false,
    }
    complete(request, STATUS_SUCCESS);
    true
}

fn print_irp(request: WDFREQUEST) {
    let irp = wdf!(WdfRequestWdmGetIrp, request);
    // SAFETY: the framework returns the request's IRP, which exists as long as the request.
    let irp = unsafe { &mut *irp };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &irp.Tail.Overlay };
    // SAFETY: the request has a current stack location.
    let location = unsafe { overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation };
    // SAFETY: as above.
    let location = unsafe { &*location };
    // SAFETY: the request is a device control.
    let control = unsafe { location.Parameters.DeviceIoControl };
    wdk::println!(
        "irp {} major {} code {:x} lengths {} {}",
        irp.Type,
        location.MajorFunction,
        control.IoControlCode & !3,
        control.InputBufferLength,
        control.OutputBufferLength
    );
    let mut mdl: PMDL = ptr::null_mut();
    let status = wdf!(WdfRequestRetrieveInputWdmMdl, request, &raw mut mdl);
    // SAFETY: the buffered request has a system buffer.
    let buffer = unsafe { irp.AssociatedIrp.SystemBuffer };
    let same = if mdl.is_null() {
        false
    } else {
        // SAFETY: the framework returned an MDL.
        let mdl = unsafe { &*mdl };
        mdl.MappedSystemVa == buffer && mdl.ByteCount == control.InputBufferLength
    };
    let mode = wdf!(WdfRequestGetRequestorMode, request);
    wdk::println!("mdl {status:x} {same} mode {mode}");
    irp.IoStatus.Information = 2;
}

/// `{1f8b2d3c-0d7e-4a0f-9a56-2b8c7d4e5f60}`.
static BLOCK: GUID =
    guid(0x1f8b_2d3c, 0x0d7e, 0x4a0f, [0x9a, 0x56, 0x2b, 0x8c, 0x7d, 0x4e, 0x5f, 0x60]);

/// The data block object with which [`fire`] requests the events of [`BLOCK`].
static OPENED: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The callback for events. Prints the event, and does not register for more events.
extern "C" fn fired(event: PVOID, context: PVOID) {
    // `WNODE_SINGLE_INSTANCE`: the size and the provider; after the 48-byte header, the offset of
    // the name, the index, and the offset and the size of the data.
    // SAFETY: the event of an instance has 16 numbers before its data.
    let fields = unsafe { event.cast::<[u32; 16]>().read() };
    let [size, provider, ..] = fields;
    let [.., index, offset, length] = fields;
    let is_own = nt!(IoWMIDeviceObjectToProviderId, context.cast()) == provider;
    let data = event.cast::<u8>().wrapping_add(offset as usize);
    // SAFETY: the data are in the event.
    let data = unsafe { slice::from_raw_parts(data, length as usize) };
    wdk::println!("wmi event {size} {is_own} {index} {data:?}");
    let object = OPENED.swap(ptr::null_mut(), Ordering::Relaxed);
    nt!(ObfDereferenceObject, object);
}

/// `EvtWmiProviderFunctionControl`: prints whether events are enabled.
extern "C" fn control(
    _provider: WDFWMIPROVIDER,
    control: WDF_WMI_PROVIDER_CONTROL,
    enable: BOOLEAN,
) -> NTSTATUS {
    wdk::println!("wmi control {control} {enable}");
    STATUS_SUCCESS
}

/// Fires an event for which the driver itself has registered.
fn fire(device: WDFDEVICE, instance: WDFWMIINSTANCE) {
    const NOTIFICATION: u32 = 4;
    const EVENT: i32 = wdk_sys::_WDF_WMI_PROVIDER_CONTROL::WdfWmiEventControl;
    let provider = wdf!(WdfWmiInstanceGetProvider, instance);
    let before = wdf!(WdfWmiProviderIsEnabled, provider, EVENT);
    let (opened, object) =
        made(|handle| nt!(IoWMIOpenBlock, &raw const BLOCK, NOTIFICATION, handle));
    OPENED.store(object, Ordering::Relaxed);
    let own = wdf!(WdfDeviceWdmGetDeviceObject, device);
    let set = nt!(IoWMISetNotificationCallback, object, Some(fired), own.cast());
    let_others_run();
    let after = wdf!(WdfWmiProviderIsEnabled, provider, EVENT);
    let mut data = *b"abc";
    let fired = wdf!(WdfWmiInstanceFireEvent, instance, 3, data.as_mut_ptr().cast());
    wdk::println!("enabled {before} {after}, {opened:x} {set:x} {fired:x}");
    let_others_run();
}

/// Waits for a millisecond, during which the kernel's threads run.
fn let_others_run() {
    let mut time = LARGE_INTEGER { QuadPart: -10_000 };
    let _status = nt!(KeDelayExecutionThread, 0, 0, &raw mut time);
}

fn use_wmi(device: WDFDEVICE) {
    let mut provider = sized!(WDF_WMI_PROVIDER_CONFIG {
        Guid: BLOCK,
        // `WdfWmiProviderExpensive`
        Flags: 2,
        EvtWmiProviderFunctionControl: Some(control)
    });
    let mut config =
        sized!(WDF_WMI_INSTANCE_CONFIG { ProviderConfig: &raw mut provider, Register: 1 });
    let mut instance: WDFWMIINSTANCE = ptr::null_mut();
    let mut create = |config: &mut WDF_WMI_INSTANCE_CONFIG| -> NTSTATUS {
        wdf!(WdfWmiInstanceCreate, device, config, WDF_NO_OBJECT_ATTRIBUTES, &raw mut instance)
    };
    let first = create(&mut config);
    config.ProviderConfig = ptr::null_mut();
    let without = create(&mut config);
    let same = wdf!(WdfWmiInstanceGetDevice, instance) == device;
    let again = wdf!(WdfWmiInstanceRegister, instance);
    fire(device, instance);
    wdf!(WdfWmiInstanceDeregister, instance);
    let fired = wdf!(WdfWmiInstanceFireEvent, instance, 0, ptr::null_mut());
    wdk::println!("wmi {first:x} {without:x} {same} {again:x} {fired:x}");
    wdf!(WdfObjectDelete, instance.cast());
}
