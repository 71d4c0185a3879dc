//! Device settings for situations that do not occur in the stand-in kernel.

use crate::{
    execution::routine::{At, Handle, routine},
    ground::{NtStatus, abi::RemoveLockOptions},
    services::kmdf::state::{
        device::{DeviceData, DeviceInit},
        framework::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfDeviceSetSpecialFileSupport", set_special_file_support),
    routine("WdfDeviceIndicateWakeStatus", indicate_wake_status),
    routine("WdfDeviceInitSetRemoveLockOptions", set_remove_lock_options),
    routine("WdfDeviceInitSetReleaseHardwareOrderOnFailure", set_release_order),
];

/// Ignores the setting. In the stand-in kernel, no device holds paging, hibernation or dump files.
fn set_special_file_support(
    context: &Context,
    device: Handle<DeviceData>,
    file_type: u32,
    _supported: bool,
) {
    /// Paging, hibernation, dump and boot files, and guest-assigned devices.
    const VALID: [u32; 5] = [1, 2, 3, 4, 6];
    device.check(context);
    if !VALID.contains(&file_type) {
        context.warn_of_misuse(|| {
            format!("with {file_type}, which is not a valid WDF_SPECIAL_FILE_TYPE")
        });
    }
}

/// Fails, because no device waits for a wake signal. Only a bus driver reports its child's wake
/// status.
fn indicate_wake_status(
    context: &Context,
    device: Handle<DeviceData>,
    status: NtStatus,
) -> NtStatus {
    /// `STATUS_PENDING` and `STATUS_CANCELLED` are not valid wake statuses.
    const WRONG: [NtStatus; 2] = [NtStatus::PENDING, NtStatus::CANCELLED];
    let is_child = device.with(context, |device| device.init.child_of.is_some());
    if WRONG.contains(&status) {
        NtStatus::INVALID_PARAMETER
    } else if is_child {
        NtStatus::INVALID_DEVICE_REQUEST
    } else {
        NtStatus::INVALID_DEVICE_STATE
    }
}

/// Accepts the option to hold the device's remove lock during requests. The stand-in kernel never
/// removes a device while its driver holds a request.
fn set_remove_lock_options(
    context: &Context,
    init: Handle<DeviceInit>,
    options: At<RemoveLockOptions>,
) {
    /// `WDF_REMOVE_LOCK_OPTION_ACQUIRE_FOR_IO`.
    const VALID: u32 = 1;
    let options = options.read(context);
    let is_control = init.with_init(context, |init| init.control_of.is_some());
    let is_sized = options.size as usize == size_of::<RemoveLockOptions>();
    if !is_sized || options.flags & !VALID != 0 || is_control {
        context.warn_of_misuse(|| {
            "with invalid options, or for a control device, which is never removed".to_owned()
        });
    }
}

/// Accepts the order in which the hardware of a failing device and its children is released. In the
/// stand-in kernel, the children of a failing device are removed first.
fn set_release_order(context: &Context, init: Handle<DeviceInit>, order: u32) {
    init.check_init(context);
    if !(1..=2).contains(&order) {
        context.warn_of_misuse(|| format!("with {order}, which is not a valid order"));
    }
}
