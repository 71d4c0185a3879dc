//! The data of a request that its sender determines: the buffers of its IRP, the parameters of an
//! open, and the buffers that another driver passes with `METHOD_NEITHER` and `METHOD_IN_DIRECT`.

use core::{
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use etw_driver_support::{made, nt, sized};
use wdk_sys::{
    IO_STACK_LOCATION, IRP, NT_SUCCESS, NTSTATUS, PVOID, PWDF_REQUEST_COMPLETION_PARAMS,
    PWDFDEVICE_INIT, STATUS_SUCCESS, ULONG, WDF_IO_TARGET_OPEN_PARAMS, WDF_NO_OBJECT_ATTRIBUTES,
    WDF_REQUEST_PARAMETERS, WDFCONTEXT, WDFDEVICE, WDFIOTARGET, WDFREQUEST,
};

use crate::{
    commands,
    framework::{answer, attributes, complete, memory, wdf},
};

const METHOD_MASK: ULONG = 3;
const METHOD_IN_DIRECT: ULONG = 1;
const METHOD_NEITHER: ULONG = 3;

/// The parameters of the last open: the access in the framework's parameters and in the IRP's, the
/// options, and the attributes with the shared access.
static OPENED: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
/// The command that is completed when the driver's own request completes, or null.
static WAITING: AtomicPtr<wdk_sys::WDFREQUEST__> = AtomicPtr::new(ptr::null_mut());
/// The output memory of the driver's own request, or null.
static OUTPUT: AtomicPtr<wdk_sys::WDFMEMORY__> = AtomicPtr::new(ptr::null_mut());

/// Runs a command of this module. Returns false if the command belongs to another module.
pub fn device_control(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) -> bool {
    match code {
        commands::OPENED => {
            answer(request, &OPENED.each_ref().map(|part| part.load(Ordering::Relaxed)));
        }
        commands::IRP_BUFFERS => {
            print_buffers(request);
            complete(request, STATUS_SUCCESS);
        }
        commands::SEND_NEITHER => send_own(device, request, commands::MEMORY | METHOD_NEITHER),
        commands::SEND_IN_DIRECT => {
            send_own(device, request, commands::SECOND | METHOD_IN_DIRECT);
        }
        commands::SECOND => {
            print_second(request);
            complete(request, STATUS_SUCCESS);
        }
        commands::TOO_MUCH => wdf!(WdfRequestCompleteWithInformation, request, STATUS_SUCCESS, 65),
        // STATUS_WDF_TOO_FRAGMENTED
        commands::FRAMEWORK_STATUS => complete(request, 0xC020_020A_u32.cast_signed()),
        _ => return false,
    }
    true
}

/// Returns a request's IRP, and the IRP's current stack location.
fn irp_of<'a>(request: WDFREQUEST) -> (&'a IRP, &'a IO_STACK_LOCATION) {
    let irp = wdf!(WdfRequestWdmGetIrp, request);
    // SAFETY: the framework returns the request's IRP, which exists as long as the request.
    let irp = unsafe { &*irp };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &irp.Tail.Overlay };
    // SAFETY: the request has a current stack location.
    let location = unsafe { overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation };
    // SAFETY: as above.
    (irp, unsafe { &*location })
}

/// Stores the parameters of an open.
pub fn note_open(request: WDFREQUEST) {
    let mut parameters = WDF_REQUEST_PARAMETERS {
        Size: size_of::<WDF_REQUEST_PARAMETERS>() as u16,
        ..WDF_REQUEST_PARAMETERS::default()
    };
    wdf!(WdfRequestGetParameters, request, &raw mut parameters);
    // SAFETY: the request is a create request.
    let create = unsafe { parameters.Parameters.Create };
    // SAFETY: a create request has a security context.
    let access = unsafe { (*create.SecurityContext).DesiredAccess };
    let (_, location) = irp_of(request);
    // SAFETY: the request is a create request.
    let in_irp = unsafe { location.Parameters.Create };
    // SAFETY: a create request has a security context.
    let state = unsafe { (*in_irp.SecurityContext).AccessState };
    // SAFETY: the security context has an access state.
    let granted = unsafe { (*state).PreviouslyGrantedAccess };
    let shared = u32::from(create.ShareAccess) | u32::from(create.FileAttributes) << 16;
    for (slot, part) in OPENED.iter().zip([access, granted, create.Options, shared]) {
        slot.store(part, Ordering::Relaxed);
    }
}

/// Prints which buffers a request's IRP contains, and whether its sender is the current thread.
fn print_buffers(request: WDFREQUEST) {
    let (irp, location) = irp_of(request);
    // SAFETY: the request is a device control.
    let control = unsafe { location.Parameters.DeviceIoControl };
    let method = control.IoControlCode & METHOD_MASK;
    // SAFETY: the IRP is not an associated IRP.
    let system = unsafe { irp.AssociatedIrp.SystemBuffer };
    let (status, output) =
        made(|handle| wdf!(WdfRequestRetrieveOutputBuffer, request, 1, handle, ptr::null_mut()));
    let mapped = if irp.MdlAddress.is_null() {
        "none"
    } else {
        // SAFETY: the IRP's list describes its output buffer.
        let mdl = unsafe { &*irp.MdlAddress };
        let is_its = mdl.MappedSystemVa == output && mdl.ByteCount == control.OutputBufferLength;
        if is_its { "its output" } else { "another" }
    };
    // SAFETY: the tail of a request that a driver owns is its overlay.
    let overlay = unsafe { &irp.Tail.Overlay };
    let thread = nt!(PsGetThreadId, overlay.Thread);
    let current = nt!(PsGetCurrentThreadId);
    wdk::println!(
        "method {method}: system {}, mdl {mapped}, user {}, input {}, status {status:x}, thread {}",
        !system.is_null(),
        !irp.UserBuffer.is_null(),
        !control.Type3InputBuffer.is_null(),
        thread == current
    );
}

/// Prints the contents of a request's second buffer.
fn print_second(request: WDFREQUEST) {
    let mut buffer: PVOID = ptr::null_mut();
    let mut length = 0;
    let status = wdf!(WdfRequestRetrieveOutputBuffer, request, 1, &raw mut buffer, &raw mut length);
    if !NT_SUCCESS(status) {
        wdk::println!("second {status:x}");
        return;
    }
    // SAFETY: the framework returned a buffer of this length, and nothing writes to it.
    let bytes = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), length) };
    let text = core::str::from_utf8(bytes).unwrap_or("?");
    wdk::println!("second {text}");
}

/// Sends a request of the driver to its own device. The request's completion completes the command.
fn send_own(device: WDFDEVICE, request: WDFREQUEST, code: ULONG) {
    let (_status, target) =
        made(|handle| wdf!(WdfIoTargetCreate, device, WDF_NO_OBJECT_ATTRIBUTES, handle));
    let mut parameters = sized!(WDF_IO_TARGET_OPEN_PARAMS {
        Type: wdk_sys::_WDF_IO_TARGET_OPEN_TYPE::WdfIoTargetOpenUseExistingDevice,
        TargetDeviceObject: wdf!(WdfDeviceWdmGetDeviceObject, device)
    });
    let opened = wdf!(WdfIoTargetOpen, target, &raw mut parameters);
    let mut own: WDFREQUEST = ptr::null_mut();
    let mut attributes = attributes();
    attributes.ParentObject = device.cast();
    let _status = wdf!(WdfRequestCreate, &raw mut attributes, target, &raw mut own);
    let (input, output) =
        (memory(b"stressed", ptr::null_mut()), memory(b"........", ptr::null_mut()));
    let formatted = wdf!(
        WdfIoTargetFormatRequestForIoctl,
        target,
        own,
        code,
        input,
        ptr::null_mut(),
        output,
        ptr::null_mut()
    );
    WAITING.store(request, Ordering::Relaxed);
    OUTPUT.store(output, Ordering::Relaxed);
    wdf!(WdfRequestSetCompletionRoutine, own, Some(completed), ptr::null_mut());
    let sent = wdf!(WdfRequestSend, own, target, ptr::null_mut());
    wdk::println!("open {opened:x} format {formatted:x} sent {sent}");
}

extern "C" fn completed(
    _request: WDFREQUEST,
    _target: WDFIOTARGET,
    parameters: PWDF_REQUEST_COMPLETION_PARAMS,
    _context: WDFCONTEXT,
) {
    // SAFETY: the framework passes valid parameters.
    let block = unsafe { (*parameters).IoStatus };
    // SAFETY: all bits of a status are valid.
    let status: NTSTATUS = unsafe { block.__bindgen_anon_1.Status };
    let mut length = 0;
    let output = OUTPUT.swap(ptr::null_mut(), Ordering::Relaxed);
    let buffer = wdf!(WdfMemoryGetBuffer, output, &raw mut length);
    // SAFETY: the memory object has a buffer of this length.
    let bytes = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), length) };
    let text = core::str::from_utf8(bytes).unwrap_or("?");
    wdk::println!("own {status:x} {text}");
    complete(WAITING.swap(ptr::null_mut(), Ordering::Relaxed), STATUS_SUCCESS);
}

/// Registers the callback that the framework calls in the sender's context.
pub fn ask_for_callers(init: PWDFDEVICE_INIT) {
    wdf!(WdfDeviceInitSetIoInCallerContextCallback, init, Some(in_caller_context));
}

/// Prints the results of retrieving the sender's buffers with a minimum length of 0, and then
/// passes the request on.
extern "C" fn in_caller_context(device: WDFDEVICE, request: WDFREQUEST) {
    let mut buffer: PVOID = ptr::null_mut();
    let mut length = 7;
    let input =
        wdf!(WdfRequestRetrieveUnsafeUserInputBuffer, request, 0, &raw mut buffer, &raw mut length);
    let input = (input, length, buffer.is_null());
    let output = wdf!(
        WdfRequestRetrieveUnsafeUserOutputBuffer, request, 0, &raw mut buffer, &raw mut length
    );
    let output = (output, length, buffer.is_null());
    wdk::println!(
        "unsafe {:x} {} {}, {:x} {} {}", input.0, input.1, input.2, output.0, output.1, output.2
    );
    let status = wdf!(WdfDeviceEnqueueRequest, device, request);
    if !NT_SUCCESS(status) {
        complete(request, status);
    }
}
