//! The device: its object, its position in the stack, and its interface.

use core::ptr;

use etw_driver_support::{check, guid, nt};
use wdk_etw::emit;
use wdk_sys::{
    BOOLEAN, DEVICE_OBJECT, DO_BUFFERED_IO, DO_DEVICE_INITIALIZING, DO_POWER_PAGABLE,
    DRIVER_OBJECT, FILE_DEVICE_UNKNOWN, GUID, IO_REMOVE_LOCK, IRP, NT_SUCCESS, NTSTATUS,
    STATUS_NO_SUCH_DEVICE, STATUS_SUCCESS, STATUS_UNSUCCESSFUL, UNICODE_STRING,
};

use crate::{
    commands::MINORS,
    queue::Queue,
    trace,
    variant::{Variant, variant},
};

/// The class of the device's interface: {5d5f4a7e-8b1c-4a0b-9c35-2f2b6b0d7e11}.
const CLASS: GUID =
    guid(0x5D5F_4A7E, 0x8B1C, 0x4A0B, [0x9C, 0x35, 0x2F, 0x2B, 0x6B, 0x0D, 0x7E, 0x11]);

/// The device extension.
#[repr(C)]
pub struct Extension {
    /// The next lower device.
    pub lower: *mut DEVICE_OBJECT,
    /// The physical device.
    pub physical: *mut DEVICE_OBJECT,
    /// The link to the device's interface. A filter has no link.
    pub link: UNICODE_STRING,
    /// The numbers of requests by minor function.
    pub counts: [u8; MINORS],
    /// The power states, newest first.
    pub states: [u8; 8],
    /// The lock that keeps the device until its requests have been completed.
    pub lock: IO_REMOVE_LOCK,
    /// The pending requests: a queue for any number, and a queue for one.
    pub queues: [Queue; 2],
    /// The bytes of the last write.
    pub written: [u8; 16],
    /// Set while the device is started.
    pub is_started: bool,
    /// Set if the driver reports the device as failed.
    pub has_failed: bool,
}

/// The pool tag of the remove lock's memory, and the lock's size.
const TAG: u32 = u32::from_ne_bytes(*b"Pnp ");
pub const LOCK_SIZE: u32 = size_of::<IO_REMOVE_LOCK>() as u32;

/// Acquires the device's remove lock with this tag.
pub fn acquire(its: &mut Extension, tag: *mut IRP) -> NTSTATUS {
    nt!(IoAcquireRemoveLockEx, &raw mut its.lock, tag.cast(), c"".as_ptr(), 0, LOCK_SIZE)
}

/// Releases the device's remove lock with this tag.
pub fn release(its: &mut Extension, tag: *mut IRP) {
    nt!(IoReleaseRemoveLockEx, &raw mut its.lock, tag.cast(), LOCK_SIZE);
}

/// Releases the device's remove lock with this tag, and waits until the lock has no holders.
pub fn release_and_wait(its: &mut Extension, tag: *mut IRP) {
    nt!(IoReleaseRemoveLockAndWaitEx, &raw mut its.lock, tag.cast(), LOCK_SIZE);
}

/// Returns the extension of a device of this driver.
pub fn extension<'a>(device: *mut DEVICE_OBJECT) -> &'a mut Extension {
    // SAFETY: the system passes a device of this driver.
    let extension = unsafe { (*device).DeviceExtension };
    // SAFETY: the extension was created with this size, zeroed and filled in, and the tests send
    // one request at a time.
    unsafe { &mut *extension.cast::<Extension>() }
}

/// `AddDevice`.
pub unsafe extern "C" fn add_device(
    driver: *mut DRIVER_OBJECT,
    physical: *mut DEVICE_OBJECT,
) -> NTSTATUS {
    if variant() == Variant::Add {
        return STATUS_UNSUCCESSFUL;
    }
    let mut device: *mut DEVICE_OBJECT = ptr::null_mut();
    check!(nt!(
        IoCreateDevice,
        driver,
        size_of::<Extension>() as u32,
        ptr::null_mut(),
        FILE_DEVICE_UNKNOWN,
        0,
        0,
        &raw mut device,
    ));
    let its = extension(device);
    its.physical = physical;
    nt!(IoInitializeRemoveLockEx, &raw mut its.lock, TAG, 0, 0, LOCK_SIZE);
    for (queue, is_limited) in its.queues.iter_mut().zip([false, true]) {
        let _status = queue.initialize(is_limited);
    }
    let attached = attach(device, physical, &mut its.lower);
    if !NT_SUCCESS(attached) {
        nt!(IoDeleteDevice, device);
        return attached;
    }
    if variant() == Variant::AddAttached {
        return STATUS_UNSUCCESSFUL;
    }
    if variant() != Variant::Filter {
        let status =
            nt!(IoRegisterDeviceInterface, physical, &CLASS, ptr::null_mut(), &raw mut its.link);
        if !NT_SUCCESS(status) {
            remove(device);
            return status;
        }
    }
    // SAFETY: the device was created above.
    let object = unsafe { &mut *device };
    object.Flags |= DO_BUFFERED_IO | DO_POWER_PAGABLE;
    if variant() != Variant::Initializing {
        object.Flags &= !DO_DEVICE_INITIALIZING;
    }
    emit!(trace::added(object.StackSize.cast_unsigned()));
    STATUS_SUCCESS
}

/// Attaches the device to the stack, once with each of the two attach routines.
fn attach(
    device: *mut DEVICE_OBJECT,
    physical: *mut DEVICE_OBJECT,
    lower: &mut *mut DEVICE_OBJECT,
) -> NTSTATUS {
    if variant() == Variant::Filter {
        *lower = nt!(IoAttachDeviceToDeviceStack, device, physical);
        return if lower.is_null() { STATUS_NO_SUCH_DEVICE } else { STATUS_SUCCESS };
    }
    nt!(IoAttachDeviceToDeviceStackSafe, device, physical, lower)
}

/// Enables or disables the device's interface.
pub fn set_interface(its: &mut Extension, is_enabled: bool) {
    if !its.link.Buffer.is_null() {
        let _status = nt!(IoSetDeviceInterfaceState, &raw mut its.link, BOOLEAN::from(is_enabled));
    }
}

/// Detaches and deletes the device.
pub fn remove(device: *mut DEVICE_OBJECT) {
    let its = extension(device);
    nt!(RtlFreeUnicodeString, &raw mut its.link);
    if variant() == Variant::Attached {
        return;
    }
    nt!(IoDetachDevice, its.lower);
    if variant() != Variant::Deleted {
        nt!(IoDeleteDevice, device);
    }
}
