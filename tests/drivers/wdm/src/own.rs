//! Requests and devices that the driver creates, and circular lists.

use core::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
};

use wdk_sys::{
    DEVICE_OBJECT, FILE_DEVICE_UNKNOWN, IO_STACK_LOCATION, IRP, IRP_MJ_DEVICE_CONTROL, IRP_MJ_READ,
    NTSTATUS, STATUS_INVALID_DEVICE_REQUEST, STATUS_SUCCESS,
    ntddk::{
        ExAllocatePool2, ExFreePool, IoAllocateIrp, IoAllocateMdl, IoAttachDeviceToDeviceStack,
        IoCreateDevice, IoDeleteDevice, IoFreeIrp, IoGetAttachedDeviceReference, IoInitializeIrp,
        IofCallDriver,
    },
};

use crate::{
    access, commands,
    irps::{INVOKE_ALWAYS, completed, current},
};

const POOL_FLAG_NON_PAGED: u64 = 0x40;
const TAG: u32 = u32::from_ne_bytes(*b"Own ");

/// The access, the options, and the attributes with the shared access of the last open.
static OPENED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

/// Keeps the parameters of an open.
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
            // SAFETY: the block was allocated for the request.
            unsafe { ExFreePool(irp.cast()) };
            0
        }
        commands::INITIALIZE_ALLOCATED => {
            // SAFETY: the device is this driver's.
            let size = unsafe { (*device).StackSize };
            // SAFETY: the size comes from the device's stack.
            let irp = unsafe { IoAllocateIrp(size, 0) };
            initialize(device, irp);
            // SAFETY: the request was allocated above.
            unsafe { IoFreeIrp(irp) };
            0
        }
        commands::ATTACH_ROUND => {
            let (one, other) = (create(device), create(device));
            // SAFETY: the devices were created above.
            let _lower = unsafe { IoAttachDeviceToDeviceStack(one, other) };
            // SAFETY: as above.
            let _lower = unsafe { IoAttachDeviceToDeviceStack(other, one) };
            0
        }
        commands::STACK_ROUND => {
            let one = create(device);
            // SAFETY: the device was created above.
            unsafe { (*one).AttachedDevice = one };
            // SAFETY: as above.
            let _top = unsafe { IoGetAttachedDeviceReference(one) };
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
                // SAFETY: the buffer has the length.
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
    // SAFETY: the device is this driver's.
    let driver = unsafe { (*device).DriverObject };
    // SAFETY: the driver object is this driver's, and the others are locals.
    let _status = unsafe {
        IoCreateDevice(driver, 0, ptr::null_mut(), FILE_DEVICE_UNKNOWN, 0, 0, &raw mut created)
    };
    // The device is ready.
    // SAFETY: the device was created above.
    unsafe { (*created).Flags &= !DO_DEVICE_INITIALIZING };
    created
}

/// Returns the size of a request for the device's stack.
fn size_of_irp(device: *mut DEVICE_OBJECT) -> u16 {
    // SAFETY: the device is this driver's.
    let locations = unsafe { (*device).StackSize }.cast_unsigned();
    (size_of::<IRP>() + usize::from(locations) * size_of::<IO_STACK_LOCATION>()) as u16
}

/// Allocates memory for a request.
fn allocate(device: *mut DEVICE_OBJECT) -> *mut IRP {
    // SAFETY: the routine has no other precondition.
    unsafe { ExAllocatePool2(POOL_FLAG_NON_PAGED, u64::from(size_of_irp(device)), TAG) }.cast()
}

fn initialize(device: *mut DEVICE_OBJECT, irp: *mut IRP) {
    // SAFETY: the device is this driver's.
    let locations = unsafe { (*device).StackSize };
    // SAFETY: the memory has the size of a request with these locations.
    unsafe { IoInitializeIrp(irp, size_of_irp(device), locations) };
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
    // SAFETY: a request has at least one location, which is below the current one.
    let next = unsafe { current(request).sub(1) };
    // SAFETY: as above.
    let location = unsafe { &mut *next };
    location.MajorFunction = major as u8;
    fill(location);
    location.CompletionRoutine = Some(completed);
    location.Control = INVOKE_ALWAYS;
    // SAFETY: the request is complete.
    let _status = unsafe { IofCallDriver(device, irp) };
    request.IoStatus.Information as usize
}

/// Reads twice with the same request, which is initialized for each read, and a third time with one in
/// memory that was freed in between.
fn initialize_twice(device: *mut DEVICE_OBJECT, buffer: *mut u8, length: usize) -> usize {
    let mut irp = allocate(device);
    let mut total = 0;
    for round in 0..3 {
        if round == 2 {
            // SAFETY: the block was allocated for the request, which has come back.
            unsafe { ExFreePool(irp.cast()) };
            irp = allocate(device);
        }
        initialize(device, irp);
        // SAFETY: the request was initialized above.
        let associated = unsafe { &mut (*irp).AssociatedIrp };
        associated.SystemBuffer = buffer.cast();
        total += send(device, irp, IRP_MJ_READ, |location| {
            location.Parameters.Read.Length = length as u32;
        });
    }
    // SAFETY: as above.
    unsafe { ExFreePool(irp.cast()) };
    total
}

/// Sends a request of the driver's own that the device keeps.
fn send_and_keep(device: *mut DEVICE_OBJECT) -> *mut IRP {
    let irp = allocate(device);
    initialize(device, irp);
    send(device, irp, IRP_MJ_DEVICE_CONTROL, |location| {
        location.Parameters.DeviceIoControl.IoControlCode = commands::KEEP;
    });
    irp
}

/// Deletes a device of a list that leads back to itself before the device.
fn delete_from_a_round(device: *mut DEVICE_OBJECT) {
    let first = create(device);
    let second = create(device);
    // The newest device is the first of the list.
    // SAFETY: the device was created above.
    let rest = unsafe { (*second).NextDevice };
    // SAFETY: as above.
    unsafe { (*second).NextDevice = second };
    // SAFETY: as above.
    unsafe { IoDeleteDevice(first) };
    // SAFETY: the first device is deleted, and the next one is still there.
    unsafe { (*second).NextDevice = if rest == first { device } else { rest } };
    // SAFETY: the device was created above.
    unsafe { IoDeleteDevice(second) };
}

/// Appends a descriptor to a request's list that leads back to itself.
fn append_to_a_round(device: *mut DEVICE_OBJECT) {
    // SAFETY: the device is this driver's.
    let size = unsafe { (*device).StackSize };
    // SAFETY: the size comes from the device's stack.
    let irp = unsafe { IoAllocateIrp(size, 0) };
    // SAFETY: the device object is memory of the system.
    let mdl = unsafe { IoAllocateMdl(device.cast(), 8, 0, 0, irp) };
    // SAFETY: the descriptor was allocated above.
    unsafe { (*mdl).Next = mdl };
    // SAFETY: as above.
    let _mdl = unsafe { IoAllocateMdl(device.cast(), 8, 1, 0, irp) };
}
