//! Reports of device changes for drivers that have registered for them. In the stand-in kernel, no
//! driver has registered.

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{NtResult, NtStatus, abi::DeviceObject},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads::queue_body,
    },
};

pub const ENTRIES: Entries = &[
    routine("IoReportTargetDeviceChange", report),
    routine("IoReportTargetDeviceChangeAsynchronous", report_later),
];

/// The first numbers of the events that only the system reports: `GUID_TARGET_DEVICE_QUERY_REMOVE`,
/// `GUID_TARGET_DEVICE_REMOVE_CANCELLED` and `GUID_TARGET_DEVICE_REMOVE_COMPLETE`. The constant
/// below contains the remaining bytes, which are the same for all three.
const OF_SYSTEM: [u32; 3] = [0xCB3A_4006, 0xCB3A_4007, 0xCB3A_4008];
const OF_SYSTEM_REST: [u32; 3] = [0x11D0_46F0, 0x6000_8FB0, 0x3F05_1397];

/// The size of `TARGET_DEVICE_CUSTOM_NOTIFICATION` before its data.
const HEADER: u16 = 36;

/// Checks a report.
fn report(context: &Context, physical: At<DeviceObject>, notification: Memory) -> NtResult {
    if context.devices().node(physical.0).is_none() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    let [version, size]: [u16; 2] = context.read(notification.0);
    let event: [u32; 4] = context.read(notification.0 + 4);
    let [first, rest @ ..] = event;
    if OF_SYSTEM.contains(&first) && rest == OF_SYSTEM_REST {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    if version != 1 || size < HEADER {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    Ok(())
}

/// Reports a change, and calls the driver's routine on a kernel thread after all notifications.
fn report_later(
    context: &Context,
    physical: At<DeviceObject>,
    notification: Memory,
    callback: Callback,
    argument: Memory,
) -> NtResult<NtStatus> {
    report(context, physical, notification)?;
    if callback != Callback(0) {
        queue_body(context, callback.0, move |context| {
            context.call_driver("the callback for a reported change", callback.0, [argument.0]);
        });
    }
    Ok(NtStatus::PENDING)
}
