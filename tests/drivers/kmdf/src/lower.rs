//! Device controls that look below the framework's objects, and WMI.

use core::ptr;

use wdk_sys::{
    GUID, NTSTATUS, PMDL, STATUS_SUCCESS, ULONG, WDF_NO_OBJECT_ATTRIBUTES, WDF_WMI_INSTANCE_CONFIG,
    WDF_WMI_PROVIDER_CONFIG, WDFDEVICE, WDFREQUEST, WDFWMIINSTANCE,
};

use crate::{
    commands,
    framework::{complete, wdf},
};

/// Runs the commands of this module. Returns false for another.
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
    // SAFETY: the framework returns the IRP of the request, which lives as long.
    let irp = unsafe { &mut *irp };
    // SAFETY: the tail of a request that a driver has is its overlay.
    let overlay = unsafe { &irp.Tail.Overlay };
    // SAFETY: the request has a current stack location.
    let location = unsafe {
        overlay
            .__bindgen_anon_2
            .__bindgen_anon_1
            .CurrentStackLocation
    };
    // SAFETY: likewise.
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
const BLOCK: GUID = GUID {
    Data1: 0x1f8b_2d3c,
    Data2: 0x0d7e,
    Data3: 0x4a0f,
    Data4: [0x9a, 0x56, 0x2b, 0x8c, 0x7d, 0x4e, 0x5f, 0x60],
};

fn use_wmi(device: WDFDEVICE) {
    let mut provider = WDF_WMI_PROVIDER_CONFIG {
        Size: size_of::<WDF_WMI_PROVIDER_CONFIG>() as u32,
        Guid: BLOCK,
        ..WDF_WMI_PROVIDER_CONFIG::default()
    };
    let mut config = WDF_WMI_INSTANCE_CONFIG {
        Size: size_of::<WDF_WMI_INSTANCE_CONFIG>() as u32,
        ProviderConfig: &raw mut provider,
        Register: 1,
        ..WDF_WMI_INSTANCE_CONFIG::default()
    };
    let mut instance: WDFWMIINSTANCE = ptr::null_mut();
    let mut create = |config: &mut WDF_WMI_INSTANCE_CONFIG| -> NTSTATUS {
        wdf!(
            WdfWmiInstanceCreate,
            device,
            config,
            WDF_NO_OBJECT_ATTRIBUTES,
            &raw mut instance
        )
    };
    let first = create(&mut config);
    let second = create(&mut config);
    config.ProviderConfig = ptr::null_mut();
    let without = create(&mut config);
    let same = wdf!(WdfWmiInstanceGetDevice, instance) == device;
    let again = wdf!(WdfWmiInstanceRegister, instance);
    wdf!(WdfWmiInstanceDeregister, instance);
    let fired = wdf!(WdfWmiInstanceFireEvent, instance, 0, ptr::null_mut());
    wdk::println!("wmi {first:x} {second:x} {without:x} {same} {again:x} {fired:x}");
    let provider = wdf!(WdfWmiInstanceGetProvider, instance);
    wdf!(WdfObjectDelete, provider.cast());
}
