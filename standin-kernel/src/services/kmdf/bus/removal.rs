//! The removal of children that their drivers report missing or eject.

use super::children::with_child;
use crate::services::kmdf::{
    device::pnp::{remove_device, surprise_remove},
    state::{device::DeviceData, framework::Context},
    work::{Work, WorkKind, queue_work},
};

/// Removes a child and its stack after the current step, because its driver reported it missing.
pub fn remove_later(context: &Context, child: u64) {
    queue_work(
        context,
        Work { kind: WorkKind::MissingChild, routine: 0, handle: child, run: remove_missing },
    );
}

fn remove_missing(context: &Context, child: u64) {
    if context.framework().exists(child) {
        surprise_remove(context, child);
    }
}

/// Ejects a child after the current step: removes its stack, and calls the bus driver's eject
/// callback.
pub fn eject_later(context: &Context, child: u64) {
    queue_work(
        context,
        Work { kind: WorkKind::EjectedChild, routine: 0, handle: child, run: eject },
    );
}

fn eject(context: &Context, child: u64) {
    let is_there = context.framework().get::<DeviceData>(child).is_ok();
    if !is_there {
        return;
    }
    let callback = with_child(context, child, |child| child.eject);
    if callback != 0 {
        context.call_driver("EvtDeviceEject", callback, [child]);
    }
    with_child(context, child, |child| child.is_missing = true);
    // If a driver refuses the removal, the device stays.
    let _removed = remove_device(context, child);
}
