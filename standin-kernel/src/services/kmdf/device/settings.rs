//! What a driver says of its device for cases that do not occur in the stand-in kernel.

use super::init::with_init;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{framework_abi::RemoveLockOptions, status::NtStatus},
    services::kmdf::state::{
        device::DeviceData,
        framework::{Context, Entries},
    },
};

pub const ENTRIES: Entries = &[
    ("WdfDeviceSetSpecialFileSupport", Routine::Four(set_special_file_support)),
    ("WdfDeviceIndicateWakeStatus", Routine::Three(indicate_wake_status)),
    ("WdfDeviceInitSetRemoveLockOptions", Routine::Three(set_remove_lock_options)),
    ("WdfDeviceInitSetReleaseHardwareOrderOnFailure", Routine::Three(set_release_order)),
];

/// Accepts the support of a special file. No paging, hibernation or dump file is on a device here.
fn set_special_file_support(
    context: &Context,
    _globals: u64,
    device: u64,
    file_type: u64,
    _supported: u64,
) -> u64 {
    /// Paging, hibernation, dump and boot files, and guest-assigned devices.
    const VALID: [u32; 5] = [1, 2, 3, 4, 6];
    context.with::<DeviceData, _>(device, |_| ());
    let file_type = low_half(file_type);
    if !VALID.contains(&file_type) {
        context.warn_of_misuse(|| {
            format!("with {file_type}, which is no valid WDF_SPECIAL_FILE_TYPE")
        });
    }
    0
}

/// Fails: no device waits for a wake signal. Only a bus driver answers for its child's.
fn indicate_wake_status(context: &Context, _globals: u64, device: u64, status: u64) -> u64 {
    /// `STATUS_PENDING` and `STATUS_CANCELLED` say nothing about a wake signal.
    const WRONG: [NtStatus; 2] = [NtStatus::PENDING, NtStatus::CANCELLED];
    let is_child = context.with::<DeviceData, _>(device, |device| device.init.child_of.is_some());
    let result = if WRONG.contains(&NtStatus::from_register(status)) {
        NtStatus::INVALID_PARAMETER
    } else if is_child {
        NtStatus::INVALID_DEVICE_REQUEST
    } else {
        NtStatus::INVALID_DEVICE_STATE
    };
    result.to_register()
}

/// Accepts the option to hold the device's remove lock during requests: a device of the stand-in kernel
/// is not removed while the driver has a request.
fn set_remove_lock_options(context: &Context, _globals: u64, init: u64, options: u64) -> u64 {
    /// `WDF_REMOVE_LOCK_OPTION_ACQUIRE_FOR_IO`.
    const VALID: u32 = 1;
    let options: RemoveLockOptions = context.read(options);
    let is_control = with_init(context, init, |init| init.control_of.is_some());
    let is_sized = options.size as usize == size_of::<RemoveLockOptions>();
    if !is_sized || options.flags & !VALID != 0 || is_control {
        context.warn_of_misuse(|| {
            "with options that are not valid, or for a control device, which is never removed"
                .to_owned()
        });
    }
    0
}

/// Accepts the order in which the hardware of a device that fails and of its children is released. The
/// children of a device that fails here are removed first.
fn set_release_order(context: &Context, _globals: u64, init: u64, order: u64) -> u64 {
    with_init(context, init, |_| ());
    let order = low_half(order);
    if !(1..=2).contains(&order) {
        context.warn_of_misuse(|| format!("with {order}, which is no valid order"));
    }
    0
}
