//! Requests that the driver builds and sends to its own stack.

use core::ptr;

use etw_driver_support::nt;
use wdk_sys::{
    _DEVICE_POWER_STATE::PowerDeviceD2, _SYSTEM_POWER_STATE::PowerSystemHibernate, BOOLEAN,
    DEVICE_CAPABILITIES, DEVICE_OBJECT, IO_STATUS_BLOCK, IRP, IRP_MJ_PNP, IRP_MJ_READ,
    IRP_MJ_WRITE, IRP_MN_QUERY_CAPABILITIES, KEVENT, LARGE_INTEGER, NT_SUCCESS, NTSTATUS, PVOID,
    STATUS_INSUFFICIENT_RESOURCES, STATUS_MORE_PROCESSING_REQUIRED, STATUS_NOT_SUPPORTED,
    STATUS_PENDING,
};

use crate::{
    commands,
    irps::{next, set_status},
};

/// The result of a request that the driver created.
pub type Outcome = (NTSTATUS, usize);

/// Runs `body` with the top of the device's stack, an event and a status block, and returns the
/// block's contents once the event is signaled.
fn with_event(
    device: *mut DEVICE_OBJECT,
    body: impl FnOnce(*mut DEVICE_OBJECT, *mut KEVENT, *mut IO_STATUS_BLOCK) -> *mut IRP,
) -> Outcome {
    let mut event = KEVENT::default();
    let mut block = IO_STATUS_BLOCK::default();
    nt!(KeInitializeEvent, &raw mut event, 0, 0);
    let top = nt!(IoGetAttachedDeviceReference, device);
    let irp = body(top, &raw mut event, &raw mut block);
    let mut status = STATUS_INSUFFICIENT_RESOURCES;
    if !irp.is_null() {
        status = nt!(IofCallDriver, top, irp);
        if status == STATUS_PENDING {
            let _waited =
                nt!(KeWaitForSingleObject, (&raw mut event).cast(), 0, 0, 0, ptr::null_mut());
            // SAFETY: the system has stored the status.
            status = unsafe { block.__bindgen_anon_1.Status };
        }
    }
    nt!(ObfDereferenceObject, top.cast());
    // SAFETY: the system has filled in the block, or it is empty.
    let stored = unsafe { block.__bindgen_anon_1.Status };
    if NT_SUCCESS(status) && stored != status {
        return (STATUS_NOT_SUPPORTED, 0);
    }
    (status, block.Information as usize)
}

/// Sends a device control; the buffer receives the output.
pub fn control(
    device: *mut DEVICE_OBJECT,
    code: u32,
    input: &[u8],
    output: *mut u8,
    room: usize,
    is_internal: bool,
) -> Outcome {
    with_event(device, |top, event, block| {
        nt!(
            IoBuildDeviceIoControlRequest,
            code,
            top,
            input.as_ptr().cast_mut().cast(),
            input.len() as u32,
            output.cast(),
            room as u32,
            BOOLEAN::from(is_internal),
            event,
            block,
        )
    })
}

/// Sends the device a control that it does not support, and a control that is canceled. For each,
/// returns whether the system stored the status, and whether it signaled the event.
pub fn fail(device: *mut DEVICE_OBJECT) -> [u8; 4] {
    let [first, second] = fail_with(device, commands::REVERSE + 0x1000, false);
    let [third, fourth] = fail_with(device, commands::KEEP, true);
    [first, second, third, fourth]
}

fn fail_with(device: *mut DEVICE_OBJECT, code: u32, cancels: bool) -> [u8; 2] {
    let mut event = KEVENT::default();
    let mut block = IO_STATUS_BLOCK::default();
    block.__bindgen_anon_1.Status = STATUS_PENDING;
    nt!(KeInitializeEvent, &raw mut event, 0, 0);
    let irp = nt!(
        IoBuildDeviceIoControlRequest,
        code,
        device,
        ptr::null_mut(),
        0,
        ptr::null_mut(),
        0,
        0,
        &raw mut event,
        &raw mut block,
    );
    let status = nt!(IofCallDriver, device, irp);
    if cancels && status == STATUS_PENDING {
        let _is_cancelled = nt!(IoCancelIrp, irp);
    }
    // SAFETY: the block was filled in above.
    let stored = unsafe { block.__bindgen_anon_1.Status };
    let is_signaled = nt!(KeReadStateEvent, &raw mut event) != 0;
    [u8::from(stored != STATUS_PENDING), u8::from(is_signaled)]
}

/// Reads from the device, or writes to it.
pub fn transfer(
    device: *mut DEVICE_OBJECT,
    writes: bool,
    buffer: *mut u8,
    length: usize,
) -> Outcome {
    let major = if writes { IRP_MJ_WRITE } else { IRP_MJ_READ };
    let mut offset = LARGE_INTEGER { QuadPart: 0 };
    with_event(device, |top, event, block| {
        nt!(
            IoBuildSynchronousFsdRequest,
            major,
            top,
            buffer.cast(),
            length as u32,
            &raw mut offset,
            event,
            block,
        )
    })
}

/// Queries the device's capabilities. Returns the device's state in the system state S3, or 0 if
/// the bus has changed fields that only drivers of other buses change.
pub fn capability(device: *mut DEVICE_OBJECT) -> Outcome {
    let mut capabilities = DEVICE_CAPABILITIES {
        Size: size_of::<DEVICE_CAPABILITIES>() as u16,
        Version: 1,
        Address: u32::MAX,
        UINumber: u32::MAX,
        SystemWake: PowerSystemHibernate,
        DeviceWake: PowerDeviceD2,
        ..DEVICE_CAPABILITIES::default()
    };
    let asked = &raw mut capabilities;
    let (status, _) = with_event(device, |top, event, block| {
        let irp = nt!(
            IoBuildSynchronousFsdRequest,
            IRP_MJ_PNP,
            top,
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            event,
            block,
        );
        if irp.is_null() {
            return irp;
        }
        set_status(irp, STATUS_NOT_SUPPORTED);
        // SAFETY: the request has a location for the top of the stack.
        let location = unsafe { &mut *next(irp) };
        location.MinorFunction = IRP_MN_QUERY_CAPABILITIES as u8;
        location.Parameters.DeviceCapabilities.Capabilities = asked;
        irp
    });
    let is_untouched = capabilities.SystemWake == PowerSystemHibernate
        && capabilities.DeviceWake == PowerDeviceD2
        && capabilities.UniqueID() == 0
        && capabilities.SilentInstall() == 0;
    // The index is PowerSystemSleeping3.
    (status, if is_untouched { capabilities.DeviceState[4] as usize } else { 0 })
}

/// Reads from the device with a request that the driver frees. Returns the bytes in the buffer.
pub fn read_later(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> Outcome {
    let mut outcome: Outcome = (STATUS_PENDING, 0);
    let mut offset = LARGE_INTEGER { QuadPart: 0 };
    let irp = nt!(
        IoBuildAsynchronousFsdRequest,
        IRP_MJ_READ,
        device,
        buffer.cast(),
        length as u32,
        &raw mut offset,
        ptr::null_mut(),
    );
    if irp.is_null() {
        return (STATUS_INSUFFICIENT_RESOURCES, 0);
    }
    let set = nt!(
        IoSetCompletionRoutineEx,
        device,
        irp,
        Some(read_ended),
        (&raw mut outcome).cast(),
        1,
        1,
        1
    );
    if !NT_SUCCESS(set) {
        return (set, 0);
    }
    let _status = nt!(IofCallDriver, device, irp);
    outcome
}

/// Copies the bytes that were read, and frees the request and its buffer.
unsafe extern "C" fn read_ended(
    _device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    context: PVOID,
) -> NTSTATUS {
    // SAFETY: the system passes the request, which belongs to this driver.
    let request = unsafe { &mut *irp };
    let count = request.IoStatus.Information as usize;
    // SAFETY: the request has a system buffer, because the device has buffered I/O.
    let system = unsafe { request.AssociatedIrp.SystemBuffer };
    // SAFETY: both buffers are as long as the read, and the count does not exceed their length.
    unsafe { ptr::copy_nonoverlapping(system.cast::<u8>(), request.UserBuffer.cast(), count) };
    nt!(ExFreePool, system);
    // SAFETY: the request is complete, so its status is set.
    let status = unsafe { request.IoStatus.__bindgen_anon_1.Status };
    // SAFETY: the context is the sender's outcome.
    unsafe { *context.cast::<Outcome>() = (status, count) };
    nt!(IoFreeIrp, irp);
    STATUS_MORE_PROCESSING_REQUIRED
}
