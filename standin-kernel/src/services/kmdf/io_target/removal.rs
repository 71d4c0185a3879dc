//! Targets and device removal: the removal of the driver's own device, and of the device on which a
//! target is open.

use super::open::{Sent, cancel_sent, fail_queued, reopen, shut};
use crate::{
    ground::NtStatus,
    services::kmdf::state::{
        framework::{Context, Data, ObjectRoutine},
        target::{State, TargetData},
    },
};

impl Data for TargetData {
    const NAME: &'static str = "WDFIOTARGET";
    const IS_PASSIVE: bool = true;
    const BEFORE_DELETE: Option<ObjectRoutine> = Some(close_before_delete);
    const DEVICE_LEAVES: Option<fn(&Context, u64) -> NtStatus> = Some(device_leaves);
    const DEVICE_STAYS: Option<ObjectRoutine> = Some(device_stays);
    const DEVICE_LEFT: Option<ObjectRoutine> = Some(device_left);

    fn is_frameworks(&self) -> bool {
        self.is_local
    }
}

/// Closes a target that is being deleted, either by the driver or together with its device.
fn close_before_delete(context: &Context, target: u64) {
    let is_local = context.with::<TargetData, _>(target, |target| target.is_local);
    if is_local {
        context.with::<TargetData, _>(target, |target| target.state = State::Deleted);
        fail_queued(context, target);
        cancel_sent(context, target, Sent::All);
    } else {
        shut(context, target, State::Deleted);
    }
}

/// Asks the driver whether the target's device may be removed. If the driver has no callback, the
/// framework closes the target.
fn device_leaves(context: &Context, target: u64) -> NtStatus {
    let callback = context.with::<TargetData, _>(target, |target| target.callbacks.query_remove);
    if callback != 0 {
        let status = context.call_driver("EvtIoTargetQueryRemove", callback, [target]);
        return NtStatus::from_register(status);
    }
    shut(context, target, State::ClosedForQueryRemove);
    NtStatus::SUCCESS
}

/// Notifies the driver that the target's device stays. If the driver has no callback, the framework
/// reopens the target.
fn device_stays(context: &Context, target: u64) {
    let (callback, is_closed) = context.with::<TargetData, _>(target, |target| {
        let is_closed = target.state == State::ClosedForQueryRemove;
        (target.callbacks.remove_canceled, is_closed)
    });
    if callback != 0 {
        context.call_driver("EvtIoTargetRemoveCanceled", callback, [target]);
    } else if is_closed {
        let _ = reopen(context, target);
    }
}

/// Notifies the driver that the target's device is gone. If the driver has no callback, the
/// framework closes the target.
fn device_left(context: &Context, target: u64) {
    let (callback, is_open) = context.with::<TargetData, _>(target, |target| {
        (target.callbacks.remove_complete, target.to.is_some())
    });
    if callback != 0 {
        context.call_driver("EvtIoTargetRemoveComplete", callback, [target]);
    } else if is_open {
        shut(context, target, State::Closed);
    } else {
        context.with::<TargetData, _>(target, |target| target.state = State::Closed);
    }
}
