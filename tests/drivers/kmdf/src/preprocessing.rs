//! Requests before they arrive in the driver's queues: IRPs before the framework handles them, and
//! requests in their senders' contexts.

use core::ptr;

use wdk_sys::{
    NT_SUCCESS, NTSTATUS, PIRP, PVOID, PWDFDEVICE_INIT, STATUS_BUFFER_TOO_SMALL, WDFDEVICE,
    WDFMEMORY, WDFREQUEST,
};

use crate::{
    framework::{complete, irql, wdf},
    mode::{self, Mode},
};

/// `IRP_MJ_READ`.
const READ: u8 = 3;

/// Registers the callbacks that the mode selects.
pub fn configure(init: PWDFDEVICE_INIT) {
    if mode::is(Mode::Preprocess) {
        let assign = |major: u8| {
            wdf!(
                WdfDeviceInitAssignWdmIrpPreprocessCallback,
                init,
                Some(preprocess),
                major,
                ptr::null_mut(),
                0
            )
        };
        let statuses = [assign(READ), assign(READ), assign(0x1C)];
        wdk::println!("preprocess {statuses:x?}");
    }
    if mode::is(Mode::Caller) {
        wdf!(WdfDeviceInitSetIoInCallerContextCallback, init, Some(in_caller_context));
    }
}

/// `EvtDeviceWdmIrpPreprocess`.
extern "C" fn preprocess(device: WDFDEVICE, irp: PIRP) -> NTSTATUS {
    // SAFETY: the framework passes the IRP of a request that arrived.
    let irp_fields = unsafe { &*irp };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &irp_fields.Tail.Overlay };
    // SAFETY: the IRP has a current stack location.
    let location = unsafe { overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation };
    // SAFETY: as above.
    let location = unsafe { *location };
    // SAFETY: the callback is for reads.
    let length = unsafe { location.Parameters.Read.Length };
    wdk::println!(
        "preprocess major {} of {length} with file {}",
        location.MajorFunction,
        !location.FileObject.is_null()
    );
    let status = wdf!(WdfDeviceWdmDispatchPreprocessedIrp, device, irp);
    wdk::println!("dispatched {status:x}");
    status
}

/// `EvtIoInCallerContext`.
extern "C" fn in_caller_context(device: WDFDEVICE, request: WDFREQUEST) {
    let mut buffer: PVOID = ptr::null_mut();
    let mut length = 0;
    let status =
        wdf!(WdfRequestRetrieveUnsafeUserInputBuffer, request, 1, &raw mut buffer, &raw mut length);
    let mut memory: WDFMEMORY = ptr::null_mut();
    let probed = if NT_SUCCESS(status) {
        wdf!(WdfRequestProbeAndLockUserBufferForRead, request, buffer, length, &raw mut memory)
    } else {
        STATUS_BUFFER_TOO_SMALL
    };
    wdk::println!("caller {status:x} {length} {probed:x} at {}", irql());
    if !memory.is_null() {
        let mut size = 0;
        let from = wdf!(WdfMemoryGetBuffer, memory, &raw mut size);
        // SAFETY: the framework locked this many bytes.
        let first = unsafe { *from.cast::<u8>() };
        wdk::println!("locked {size}, first {first}");
    }
    let status = wdf!(WdfDeviceEnqueueRequest, device, request);
    wdk::println!("enqueued {status:x}");
    if !NT_SUCCESS(status) {
        complete(request, status);
    }
}
