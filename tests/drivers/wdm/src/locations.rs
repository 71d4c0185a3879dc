//! The driver's own requests in which the driver itself has a stack location.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use etw_driver_support::nt;
use wdk_sys::{
    DEVICE_OBJECT, IO_STACK_LOCATION, IRP, IRP_MJ_DEVICE_CONTROL, IRP_MJ_READ, LARGE_INTEGER,
    NTSTATUS, PIO_WORKITEM, PVOID, STATUS_MORE_PROCESSING_REQUIRED, STATUS_SUCCESS,
};

use crate::irps::{INVOKE_ALWAYS, complete, completed, current, set_buffer};

const POOL_FLAG_NON_PAGED: u64 = 0x40;
const TAG: u32 = u32::from_ne_bytes(*b"Loc ");

/// The number of locations in each request: the driver's own, and those for the target device.
const LOCATIONS: i8 = 3;

/// The control code of the request that is forwarded twice. No process sends it.
pub const FORWARDED: u32 = (0x22 << 16) | (0x900 << 2);

/// Allocates a request.
fn allocate() -> *mut IRP {
    nt!(IoAllocateIrp, LOCATIONS, 0)
}

/// Sets the next stack location like `IoSetNextIrpStackLocation`. The driver uses the first
/// location itself.
fn take_location(irp: *mut IRP, device: *mut DEVICE_OBJECT) -> *mut IO_STACK_LOCATION {
    // SAFETY: the request was allocated with several locations, and belongs to this driver.
    let request = unsafe { &mut *irp };
    // SAFETY: as above, and no location is in use.
    let own = unsafe { current(request).sub(1) };
    request.CurrentLocation -= 1;
    request.Tail.Overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation = own;
    // SAFETY: the location belongs to the request.
    unsafe { (*own).DeviceObject = device };
    own
}

/// Fills in a location for a read.
fn fill_read(at: *mut IO_STACK_LOCATION, length: usize) {
    // SAFETY: the location is in a request of this driver.
    let location = unsafe { &mut *at };
    location.MajorFunction = IRP_MJ_READ as u8;
    location.Parameters.Read.Length = length as u32;
}

/// Returns the number of bytes that a request has read.
fn count(irp: *mut IRP) -> usize {
    // SAFETY: the request belongs to this driver, and has returned.
    let block = unsafe { &(*irp).IoStatus };
    block.Information as usize
}

/// Reads with a request that its completion routine frees, with a request that is forwarded, and
/// with a request in the driver's memory. Returns the number of bytes.
pub fn read_with_each(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> usize {
    let mut total = 0_usize;
    let irp = allocate();
    take_location(irp, device);
    set_buffer(irp, buffer);
    send_below(device, irp, length, Some(ended), (&raw mut total).cast());

    let irp = allocate();
    fill_read(take_location(irp, device), length);
    set_buffer(irp, buffer);
    let is_passed = nt!(IoForwardIrpSynchronously, device, irp);
    if is_passed != 0 {
        total += count(irp);
    }
    nt!(IoFreeIrp, irp);

    let size = size_of::<IRP>() + LOCATIONS as usize * size_of::<IO_STACK_LOCATION>();
    let irp = nt!(ExAllocatePool2, POOL_FLAG_NON_PAGED, size as u64, TAG).cast::<IRP>();
    nt!(IoInitializeIrp, irp, size as u16, LOCATIONS);
    take_location(irp, device);
    set_buffer(irp, buffer);
    send_below(device, irp, length, Some(completed), ptr::null_mut());
    total += count(irp);
    nt!(ExFreePool, irp.cast());
    total
}

type Routine = unsafe extern "C" fn(*mut DEVICE_OBJECT, *mut IRP, PVOID) -> NTSTATUS;

/// Sends a read to the device, with a completion routine.
fn send_below(
    device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    length: usize,
    routine: Option<Routine>,
    context: PVOID,
) {
    // SAFETY: this driver owns the request.
    let request = unsafe { &*irp };
    // SAFETY: the request has a location below this driver's.
    let next = unsafe { current(request).sub(1) };
    fill_read(next, length);
    // SAFETY: as above.
    let location = unsafe { &mut *next };
    location.CompletionRoutine = routine;
    location.Context = context;
    location.Control = INVOKE_ALWAYS;
    let _status = nt!(IofCallDriver, device, irp);
}

/// Adds the number of bytes that a request has read, and frees the request.
unsafe extern "C" fn ended(_device: *mut DEVICE_OBJECT, irp: *mut IRP, context: PVOID) -> NTSTATUS {
    // SAFETY: the context is the sender's number.
    unsafe { *context.cast::<usize>() += count(irp) };
    nt!(IoFreeIrp, irp);
    STATUS_MORE_PROCESSING_REQUIRED
}

/// The progress of a forwarded request: 1 at the upper driver, which is below the request's owner,
/// 2 at the lower driver, and 3 when it has returned to the upper driver, which continues its
/// completion.
static STEP: AtomicU32 = AtomicU32::new(0);

/// Forwards a request to a driver that forwards it on a system thread. Returns the request's
/// progress at its completion.
pub fn forward_twice(device: *mut DEVICE_OBJECT) -> usize {
    let irp = allocate();
    let own = take_location(irp, device);
    // SAFETY: the location belongs to this driver.
    let location = unsafe { &mut *own };
    location.MajorFunction = IRP_MJ_DEVICE_CONTROL as u8;
    location.Parameters.DeviceIoControl.IoControlCode = FORWARDED;
    STEP.store(0, Ordering::SeqCst);
    let _is_passed = nt!(IoForwardIrpSynchronously, device, irp);
    let step = STEP.load(Ordering::SeqCst);
    nt!(IoFreeIrp, irp);
    step as usize
}

/// Makes a system thread forward the request or, if it was already forwarded, complete it.
pub fn forwarded(device: *mut DEVICE_OBJECT, irp: *mut IRP) {
    let item = nt!(IoAllocateWorkItem, device);
    nt!(IoQueueWorkItemEx, item, Some(go_on), 1, irp.cast());
}

unsafe extern "C" fn go_on(device: PVOID, context: PVOID, item: PIO_WORKITEM) {
    nt!(IoFreeWorkItem, item);
    let irp = context.cast::<IRP>();
    let before = STEP.fetch_add(1, Ordering::SeqCst);
    if before == 0 {
        let _is_passed = nt!(IoForwardIrpSynchronously, device.cast(), irp);
    }
    sleep();
    if before == 0 {
        STEP.fetch_add(1, Ordering::SeqCst);
    }
    complete(irp, STATUS_SUCCESS, 0);
}

/// Waits for a millisecond.
fn sleep() {
    let mut interval = LARGE_INTEGER { QuadPart: -10_000 };
    let _status = nt!(KeDelayExecutionThread, 0, 0, &raw mut interval);
}
