//! Device controls that use objects other than queues and requests.

use core::{
    ptr, slice,
    sync::atomic::{AtomicPtr, Ordering},
};

use etw_driver_support::{check, made, sized};
use wdk_sys::{
    _WDF_DEVICE_FAILED_ACTION, NT_SUCCESS, NTSTATUS, PVOID, STATUS_INVALID_DEVICE_REQUEST,
    STATUS_SUCCESS, ULONG, WDF_NO_OBJECT_ATTRIBUTES, WDF_WORKITEM_CONFIG, WDFDEVICE, WDFMEMORY,
    WDFREQUEST, WDFWORKITEM,
};

use crate::{
    bus, commands, concurrency, device_queries, dma, facts,
    framework::{answer_status, attributes, complete, irql, wdf},
    interrupt, io_target, presentation, verifier, wdm, wdm_objects, wdm_request,
};

/// The request that the work item completes, or null.
static WORK: AtomicPtr<wdk_sys::WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());

/// Runs a command of this module. Completes the request of any other command with an error.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) {
    match code {
        commands::WORK => {
            WORK.store(request, Ordering::Relaxed);
            let item = work_item(device);
            wdf!(WdfWorkItemEnqueue, item);
            wdf!(WdfWorkItemEnqueue, item);
            wdk::println!("queued");
        }
        commands::MEMORY => {
            let status = reverse(request);
            if !NT_SUCCESS(status) {
                complete(request, status);
            }
        }
        commands::FILE => print_file(device, request),
        commands::FAIL => {
            let action = _WDF_DEVICE_FAILED_ACTION::WdfDeviceFailedNoRestart;
            wdf!(WdfDeviceSetFailed, device, action);
            wdk::println!("set failed");
            complete(request, STATUS_SUCCESS);
        }
        _ if bus::device_control(device, request, code) => {}
        _ if facts::device_control(device, request, code) => {}
        _ if dma::device_control(device, request, code) => {}
        _ if presentation::device_control(device, request, code) => {}
        _ if verifier::device_control(device, request, code) => {}
        _ if device_queries::device_control(device, request, code) => {}
        _ if interrupt::device_control(request, code) => {}
        _ if wdm::device_control(device, request, code) => {}
        _ if wdm_objects::device_control(device, request, code) => {}
        _ if wdm_request::device_control(device, request, code) => {}
        _ if io_target::device_control(device, request, code) => {}
        _ if concurrency::device_control(request, code) => {}
        // The command is unknown.
        _ => complete(request, STATUS_INVALID_DEVICE_REQUEST),
    }
}

extern "C" fn work(item: WDFWORKITEM) {
    let has_parent = !wdf!(WdfWorkItemGetParentObject, item).is_null();
    wdk::println!("work at {}, {has_parent}", irql());
    let request = WORK.swap(ptr::null_mut(), Ordering::Relaxed);
    if !request.is_null() {
        complete(request, STATUS_SUCCESS);
    }
}

fn work_item(device: WDFDEVICE) -> WDFWORKITEM {
    let mut config =
        sized!(WDF_WORKITEM_CONFIG { EvtWorkItemFunc: Some(work), AutomaticSerialization: 1 });
    let mut attributes = attributes();
    attributes.ParentObject = device.cast();
    let (_status, item) =
        made(|handle| wdf!(WdfWorkItemCreate, &raw mut config, &raw mut attributes, handle));
    item
}

/// Copies a request's input to its output in reverse order, through a memory object.
fn reverse(request: WDFREQUEST) -> NTSTATUS {
    let mut input: WDFMEMORY = ptr::null_mut();
    check!(wdf!(WdfRequestRetrieveInputMemory, request, &raw mut input));
    let mut size = 0;
    let from = wdf!(WdfMemoryGetBuffer, input, &raw mut size);
    let mut copy: WDFMEMORY = ptr::null_mut();
    let mut buffer: PVOID = ptr::null_mut();
    check!(wdf!(
        WdfMemoryCreate,
        WDF_NO_OBJECT_ATTRIBUTES,
        wdk_sys::_POOL_TYPE::NonPagedPoolNx,
        0,
        size,
        &raw mut copy,
        &raw mut buffer
    ));
    check!(wdf!(WdfMemoryCopyFromBuffer, copy, 0, from, size));
    // SAFETY: the framework returned the buffer with this size, and nothing else uses it.
    unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), size) }.reverse();
    let past_the_end = wdf!(WdfMemoryCopyToBuffer, copy, 1, buffer, size);
    wdk::println!("past the end {past_the_end:x}");
    let mut output: WDFMEMORY = ptr::null_mut();
    check!(wdf!(WdfRequestRetrieveOutputMemory, request, &raw mut output));
    let to = wdf!(WdfMemoryGetBuffer, output, ptr::null_mut());
    let status = wdf!(WdfMemoryCopyToBuffer, copy, 0, to, size);
    wdf!(WdfObjectDelete, copy.cast());
    if NT_SUCCESS(status) {
        wdf!(WdfRequestCompleteWithInformation, request, STATUS_SUCCESS, size as u64);
    }
    status
}

fn print_file(device: WDFDEVICE, request: WDFREQUEST) {
    let file = wdf!(WdfRequestGetFileObject, request);
    let is_same = wdf!(WdfFileObjectGetDevice, file) == device;
    let name = wdf!(WdfFileObjectGetFileName, file);
    // SAFETY: the framework returns a string that lives as long as the file.
    let name = unsafe { *name };
    let length = usize::from(name.Length) / 2;
    // SAFETY: a counted string has a buffer of its length.
    let first = unsafe { slice::from_raw_parts(name.Buffer, length) }
        .get(1)
        .and_then(|unit| char::from_u32(u32::from(*unit)))
        .unwrap_or('-');
    wdk::println!("file of {length} with {first}, {is_same}");
    answer_status(request, STATUS_SUCCESS);
}
