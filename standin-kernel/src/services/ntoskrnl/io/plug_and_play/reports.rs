//! Reports of changes of a device, which those hear that registered for them. Nobody does here.

use crate::{
    execution::routine::Routine,
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads::queue_body,
    },
};

pub const ENTRIES: Entries = &[
    ("IoReportTargetDeviceChange", Irql::PASSIVE_LEVEL, Routine::Two(report)),
    ("IoReportTargetDeviceChangeAsynchronous", Irql::DISPATCH_LEVEL, Routine::Four(report_later)),
];

/// The events that only the system reports: `GUID_TARGET_DEVICE_QUERY_REMOVE`,
/// `GUID_TARGET_DEVICE_REMOVE_CANCELLED` and `GUID_TARGET_DEVICE_REMOVE_COMPLETE`, which differ in their
/// first number, and the rest of them.
const OF_SYSTEM: [u32; 3] = [0xCB3A_4006, 0xCB3A_4007, 0xCB3A_4008];
const OF_SYSTEM_REST: [u32; 3] = [0x11D0_46F0, 0x6000_8FB0, 0x3F05_1397];

/// The size of `TARGET_DEVICE_CUSTOM_NOTIFICATION` before its data.
const HEADER: u16 = 36;

/// Checks a report. Returns the status.
fn check(context: &Context, physical: u64, notification: u64) -> NtStatus {
    if context.devices().node(physical).is_none() {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    let [version, size]: [u16; 2] = context.read(notification);
    let event: [u32; 4] = context.read(notification + 4);
    let [first, rest @ ..] = event;
    if OF_SYSTEM.contains(&first) && rest == OF_SYSTEM_REST {
        return NtStatus::INVALID_DEVICE_REQUEST;
    }
    if version != 1 || size < HEADER {
        return NtStatus::INVALID_PARAMETER;
    }
    NtStatus::SUCCESS
}

fn report(context: &Context, physical: u64, notification: u64) -> u64 {
    check(context, physical, notification).to_register()
}

/// Reports a change, and calls the driver's routine on a thread of the kernel when everybody has been
/// told.
fn report_later(
    context: &Context,
    physical: u64,
    notification: u64,
    callback: u64,
    argument: u64,
) -> u64 {
    let status = check(context, physical, notification);
    if !status.is_success() {
        return status.to_register();
    }
    if callback != 0 {
        queue_body(context, callback, move |context| {
            context.call_driver("the callback for a reported change", callback, [argument]);
        });
    }
    NtStatus::PENDING.to_register()
}
