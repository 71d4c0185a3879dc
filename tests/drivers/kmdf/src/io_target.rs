//! Device controls that send requests to an I/O target: the test's device `\Device\Simulated`.

use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{made, sized};
use wdk_sys::{
    NT_SUCCESS, NTSTATUS, PWDF_REQUEST_COMPLETION_PARAMS, STATUS_SUCCESS, ULONG,
    WDF_IO_TARGET_OPEN_PARAMS, WDF_MEMORY_DESCRIPTOR, WDF_NO_OBJECT_ATTRIBUTES, WDFCONTEXT,
    WDFDEVICE, WDFIOTARGET, WDFREQUEST,
};

use crate::{
    commands,
    framework::{complete, counted, irql, memory, utf16, wdf},
};

const NAME: [u16; 17] = utf16(br"\Device\Simulated");
const CODE: ULONG = 0x0022_2000;

/// The command that is completed when the sent request completes, or null.
static WAITING: AtomicPtr<wdk_sys::WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());
/// The target that the driver opened last, or null.
static TARGET: AtomicPtr<wdk_sys::WDFIOTARGET__> = AtomicPtr::new(ptr::null_mut());

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::TARGET => {
            synchronously(device);
            complete(request, STATUS_SUCCESS);
        }
        commands::SEND => {
            WAITING.store(request, Ordering::Relaxed);
            let sent = send(device);
            wdk::println!("sent {sent}");
        }
        commands::OPEN_OBJECT => {
            open_object(device);
            complete(request, STATUS_SUCCESS);
        }
        _ => return false,
    }
    true
}

/// Creates a target, and opens it by the device's name.
fn open(device: WDFDEVICE) -> WDFIOTARGET {
    let (_status, target) =
        made(|handle| wdf!(WdfIoTargetCreate, device, WDF_NO_OBJECT_ATTRIBUTES, handle));
    let created = wdf!(WdfIoTargetGetState, target);
    let mut parameters = sized!(WDF_IO_TARGET_OPEN_PARAMS {
        Type: wdk_sys::_WDF_IO_TARGET_OPEN_TYPE::WdfIoTargetOpenByName,
        TargetDeviceName: counted(&NAME),
        DesiredAccess: wdk_sys::GENERIC_READ
    });
    let opened = wdf!(WdfIoTargetOpen, target, &raw mut parameters);
    let state = wdf!(WdfIoTargetGetState, target);
    wdk::println!("open {opened:x} from {created} to {state}");
    TARGET.store(target, Ordering::Relaxed);
    target
}

/// Opens the next lower device by its object, and sends it a device control.
fn open_object(device: WDFDEVICE) {
    let (_status, target) =
        made(|handle| wdf!(WdfIoTargetCreate, device, WDF_NO_OBJECT_ATTRIBUTES, handle));
    let lower = wdf!(WdfDeviceWdmGetAttachedDevice, device);
    let mut parameters = sized!(WDF_IO_TARGET_OPEN_PARAMS {
        Type: wdk_sys::_WDF_IO_TARGET_OPEN_TYPE::WdfIoTargetOpenUseExistingDevice,
        TargetDeviceObject: lower
    });
    let opened = wdf!(WdfIoTargetOpen, target, &raw mut parameters);
    let same = wdf!(WdfIoTargetWdmGetTargetDeviceObject, target) == lower;
    let mut input = *b"ping";
    let mut bytes = 0;
    let status = wdf!(
        WdfIoTargetSendIoctlSynchronously,
        target,
        ptr::null_mut(),
        CODE,
        &mut descriptor(&mut input),
        ptr::null_mut(),
        ptr::null_mut(),
        &raw mut bytes
    );
    wdk::println!("object {opened:x} {same} ioctl {status:x} {bytes}");
    wdf!(WdfIoTargetClose, target);
    wdf!(WdfObjectDelete, target.cast());
}

/// Returns the descriptor of a buffer.
fn descriptor(buffer: &mut [u8]) -> WDF_MEMORY_DESCRIPTOR {
    let mut descriptor = WDF_MEMORY_DESCRIPTOR {
        Type: wdk_sys::_WDF_MEMORY_DESCRIPTOR_TYPE::WdfMemoryDescriptorTypeBuffer,
        ..WDF_MEMORY_DESCRIPTOR::default()
    };
    descriptor.u.BufferType.Length = buffer.len() as u32;
    descriptor.u.BufferType.Buffer = buffer.as_mut_ptr().cast();
    descriptor
}

fn synchronously(device: WDFDEVICE) {
    let target = open(device);
    let mut input = *b"ping";
    let mut output = [0_u8; 8];
    let mut bytes = 0;
    let status = wdf!(
        WdfIoTargetSendIoctlSynchronously,
        target,
        ptr::null_mut(),
        CODE,
        &mut descriptor(&mut input),
        &mut descriptor(&mut output),
        ptr::null_mut(),
        &raw mut bytes
    );
    wdk::println!("ioctl {status:x} {bytes} {:?}", &output[..4]);
    let mut offset = 512;
    let status = wdf!(
        WdfIoTargetSendReadSynchronously,
        target,
        ptr::null_mut(),
        &mut descriptor(&mut output),
        &raw mut offset,
        ptr::null_mut(),
        &raw mut bytes
    );
    wdk::println!("read {status:x} {bytes} {:?}", &output[..2]);
    let status = wdf!(
        WdfIoTargetSendWriteSynchronously,
        target,
        ptr::null_mut(),
        &mut descriptor(&mut input),
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut()
    );
    wdk::println!("write {status:x}");
    let object = wdf!(WdfIoTargetWdmGetTargetDeviceObject, target);
    let file = wdf!(WdfIoTargetWdmGetTargetFileObject, target);
    let owner = wdf!(WdfIoTargetGetDevice, target) == device;
    wdk::println!("target {} {} {owner}", !object.is_null(), !file.is_null());
    wdf!(WdfIoTargetClose, target);
    let status = wdf!(
        WdfIoTargetSendWriteSynchronously,
        target,
        ptr::null_mut(),
        &mut descriptor(&mut input),
        ptr::null_mut(),
        ptr::null_mut(),
        ptr::null_mut()
    );
    let state = wdf!(WdfIoTargetGetState, target);
    wdk::println!("closed {status:x} {state}");
    wdf!(WdfObjectDelete, target.cast());
}

/// Sends a new request to a new target.
fn send(device: WDFDEVICE) -> u8 {
    let target = open(device);
    let (_status, request) =
        made(|handle| wdf!(WdfRequestCreate, WDF_NO_OBJECT_ATTRIBUTES, target, handle));
    let status = wdf!(
        WdfIoTargetFormatRequestForIoctl,
        target,
        request,
        CODE,
        memory(b"ping", request.cast()),
        ptr::null_mut(),
        memory(&[0; 8], request.cast()),
        ptr::null_mut()
    );
    if !NT_SUCCESS(status) {
        wdk::println!("format {status:x}");
    }
    wdf!(
        WdfRequestSetCompletionRoutine,
        request,
        Some(completed),
        ptr::null_mut::<core::ffi::c_void>()
    );
    wdf!(WdfRequestSend, request, target, ptr::null_mut())
}

/// The completion routine of the requests that the driver creates.
extern "C" fn completed(
    request: WDFREQUEST,
    target: WDFIOTARGET,
    parameters: PWDF_REQUEST_COMPLETION_PARAMS,
    _context: WDFCONTEXT,
) {
    // SAFETY: the framework passes the parameters of the completed request.
    let parameters = unsafe { &*parameters };
    // SAFETY: the status is the member that completed requests have.
    let status: NTSTATUS = unsafe { parameters.IoStatus.__bindgen_anon_1.Status };
    // SAFETY: the request is a device control, which has these parameters.
    let control = unsafe { parameters.Parameters.Ioctl };
    let same = target == TARGET.load(Ordering::Relaxed);
    wdk::println!(
        "completed {status:x} {} type {} code {:x} {same} at {}",
        parameters.IoStatus.Information,
        parameters.Type,
        control.IoControlCode,
        irql()
    );
    if NT_SUCCESS(status) {
        let mut size = 0;
        let buffer = wdf!(WdfMemoryGetBuffer, control.Output.Buffer, &raw mut size);
        // SAFETY: the output is 8 bytes long.
        let output = unsafe { *buffer.cast::<[u8; 4]>() };
        wdk::println!("output {output:?} of {size}");
    }
    let _ = request;
    let waiting = WAITING.swap(ptr::null_mut(), Ordering::Relaxed);
    if !waiting.is_null() {
        complete(waiting, status);
    }
}
