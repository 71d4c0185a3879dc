//! Requests and devices that the driver creates, and cyclic lists.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use etw_driver_support::nt;
use wdk_sys::{
    DEVICE_OBJECT, FILE_DEVICE_UNKNOWN, IO_STACK_LOCATION, IRP, IRP_MJ_DEVICE_CONTROL, IRP_MJ_READ,
    NTSTATUS, STATUS_INVALID_DEVICE_REQUEST, STATUS_SUCCESS,
};

use crate::{
    access, commands,
    irps::{INVOKE_ALWAYS, completed, current, set_buffer},
};

const POOL_FLAG_NON_PAGED: u64 = 0x40;
const TAG: u32 = u32::from_ne_bytes(*b"Own ");

/// The access, the options, and the attributes with the shared access, from the last open.
static OPENED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// Stores the parameters of an open.
pub fn note_open(location: &IO_STACK_LOCATION) {
    // SAFETY: the location belongs to a create request.
    let create = unsafe { location.Parameters.Create };
    // SAFETY: a create request has a security context.
    let access = unsafe { (*create.SecurityContext).DesiredAccess };
    let shared = u32::from(create.ShareAccess) | u32::from(create.FileAttributes) << 16;
    for (slot, part) in OPENED.iter().zip([access, create.Options, shared]) {
        slot.store(part, Ordering::Relaxed);
    }
}

/// Reads from the device with a request that the I/O manager frees. Returns the number of bytes.
pub fn read_asynchronous(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> usize {
    let mut block = wdk_sys::IO_STATUS_BLOCK::default();
    let irp = nt!(
        IoBuildAsynchronousFsdRequest,
        IRP_MJ_READ,
        device,
        buffer.cast(),
        length as u32,
        ptr::null_mut(),
        &raw mut block
    );
    let _status = nt!(IofCallDriver, device, irp);
    block.Information as usize
}

/// Runs a command of this module. Returns the status and the information.
pub fn control(
    device: *mut DEVICE_OBJECT,
    code: u32,
    buffer: *mut u8,
    length: usize,
) -> (NTSTATUS, usize) {
    let information = match code {
        commands::INITIALIZE => initialize_twice(device, buffer, length),
        commands::INITIALIZE_SENT => {
            let irp = send_and_keep(device);
            initialize(device, irp);
            0
        }
        commands::FREE_SENT => {
            let irp = send_and_keep(device);
            nt!(ExFreePool, irp.cast());
            0
        }
        commands::INITIALIZE_ALLOCATED => {
            let irp = nt!(IoAllocateIrp, stack_size(device), 0);
            initialize(device, irp);
            nt!(IoFreeIrp, irp);
            0
        }
        commands::ATTACH_ROUND => {
            let (one, other) = (create(device), create(device));
            let _lower = nt!(IoAttachDeviceToDeviceStack, one, other);
            let _lower = nt!(IoAttachDeviceToDeviceStack, other, one);
            0
        }
        commands::STACK_ROUND => {
            let one = create(device);
            // SAFETY: the device was created above.
            unsafe { (*one).AttachedDevice = one };
            let _top = nt!(IoGetAttachedDeviceReference, one);
            0
        }
        commands::LIST_ROUND => {
            delete_from_a_round(device);
            0
        }
        commands::DESCRIPTORS_ROUND => {
            append_to_a_round(device);
            0
        }
        commands::TOO_MUCH => length + 1,
        commands::OPENED => {
            let opened = OPENED.iter().map(|part| part.load(Ordering::Relaxed));
            let all = opened.chain(access::results());
            for (at, part) in all.enumerate().take(length / 4) {
                let part = part.to_le_bytes();
                let to = buffer.wrapping_add(4 * at);
                // SAFETY: the buffer is long enough.
                unsafe { ptr::copy_nonoverlapping(part.as_ptr(), to, 4) };
            }
            length.min(28)
        }
        _ => return (STATUS_INVALID_DEVICE_REQUEST, 0),
    };
    (STATUS_SUCCESS, information)
}

/// Creates a device of the same driver.
pub fn create(device: *mut DEVICE_OBJECT) -> *mut DEVICE_OBJECT {
    const DO_DEVICE_INITIALIZING: u32 = 0x80;
    let mut created: *mut DEVICE_OBJECT = ptr::null_mut();
    // SAFETY: the device belongs to this driver.
    let driver = unsafe { (*device).DriverObject };
    let _status = nt!(
        IoCreateDevice,
        driver,
        0,
        ptr::null_mut(),
        FILE_DEVICE_UNKNOWN,
        0,
        0,
        &raw mut created
    );
    // The device is ready.
    // SAFETY: the device was created above.
    unsafe { (*created).Flags &= !DO_DEVICE_INITIALIZING };
    created
}

/// Returns the number of stack locations that a request for the device requires.
pub fn stack_size(device: *mut DEVICE_OBJECT) -> i8 {
    // SAFETY: the device belongs to this driver.
    unsafe { (*device).StackSize }
}

/// Returns the size of a request for the device's stack.
fn size_of_irp(device: *mut DEVICE_OBJECT) -> u16 {
    let locations = usize::from(stack_size(device).cast_unsigned());
    (size_of::<IRP>() + locations * size_of::<IO_STACK_LOCATION>()) as u16
}

/// Allocates memory for a request.
fn allocate(device: *mut DEVICE_OBJECT) -> *mut IRP {
    nt!(ExAllocatePool2, POOL_FLAG_NON_PAGED, u64::from(size_of_irp(device)), TAG).cast()
}

fn initialize(device: *mut DEVICE_OBJECT, irp: *mut IRP) {
    nt!(IoInitializeIrp, irp, size_of_irp(device), stack_size(device));
}

/// Reads from the device with an initialized request. Returns the number of bytes.
pub fn read(device: *mut DEVICE_OBJECT, irp: *mut IRP, buffer: *mut u8, length: usize) -> usize {
    set_buffer(irp, buffer);
    send(device, irp, IRP_MJ_READ, |location| location.Parameters.Read.Length = length as u32)
}

/// Sends an initialized request to the device. Returns the number of bytes.
fn send(
    device: *mut DEVICE_OBJECT,
    irp: *mut IRP,
    major: u32,
    fill: impl FnOnce(&mut IO_STACK_LOCATION),
) -> usize {
    // SAFETY: the request was initialized for the device.
    let request = unsafe { &mut *irp };
    // SAFETY: a request has at least one location, which is below the current location.
    let next = unsafe { current(request).sub(1) };
    // SAFETY: as above.
    let location = unsafe { &mut *next };
    location.MajorFunction = major as u8;
    fill(location);
    location.CompletionRoutine = Some(completed);
    location.Control = INVOKE_ALWAYS;
    let _status = nt!(IofCallDriver, device, irp);
    request.IoStatus.Information as usize
}

/// Reads twice with the same request, which is initialized for each read, and a third time with a
/// request in memory that was freed in between.
fn initialize_twice(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> usize {
    let mut irp = allocate(device);
    let mut total = 0;
    for round in 0..3 {
        if round == 2 {
            nt!(ExFreePool, irp.cast());
            irp = allocate(device);
        }
        initialize(device, irp);
        total += read(device, irp, buffer, length);
    }
    nt!(ExFreePool, irp.cast());
    total
}

/// Sends one of the driver's own requests, which the device leaves pending.
fn send_and_keep(device: *mut DEVICE_OBJECT) -> *mut IRP {
    let irp = allocate(device);
    initialize(device, irp);
    send(device, irp, IRP_MJ_DEVICE_CONTROL, |location| {
        location.Parameters.DeviceIoControl.IoControlCode = commands::KEEP;
    });
    irp
}

/// Deletes a device that is not reachable in a cyclic list of devices.
fn delete_from_a_round(device: *mut DEVICE_OBJECT) {
    let first = create(device);
    let second = create(device);
    // SAFETY: both devices exist, and the newest one is first in the list.
    let rest = unsafe { (*second).NextDevice };
    // SAFETY: as above.
    unsafe { (*second).NextDevice = second };
    nt!(IoDeleteDevice, first);
    // SAFETY: the first device is deleted, and the second device still exists.
    unsafe { (*second).NextDevice = if rest == first { device } else { rest } };
    nt!(IoDeleteDevice, second);
}

/// Appends a descriptor to a request's cyclic list.
fn append_to_a_round(device: *mut DEVICE_OBJECT) {
    let irp = nt!(IoAllocateIrp, stack_size(device), 0);
    let mdl = nt!(IoAllocateMdl, device.cast(), 8, 0, 0, irp);
    // SAFETY: the descriptor was allocated above.
    unsafe { (*mdl).Next = mdl };
    let _mdl = nt!(IoAllocateMdl, device.cast(), 8, 1, 0, irp);
}
