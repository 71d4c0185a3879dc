//! The routines by which drivers notify the Plug and Play manager of changes.

use super::life;
use crate::{
    execution::routine::{At, routine},
    ground::abi::DeviceObject,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads,
    },
};

pub const ENTRIES: Entries = &[
    routine("IoInvalidateDeviceState", invalidate_state),
    routine("IoInvalidateDeviceRelations", invalidate_relations),
];

/// Bugchecks if no stack's physical device is at the address.
fn must_be_physical(context: &Context, device: u64) {
    if context.devices().node(device).is_none() {
        context.stop_for_wrong(device, "the physical device object of a device");
    }
}

/// Makes the Plug and Play manager query a device's state later, on a separate thread.
fn invalidate_state(context: &Context, physical: At<DeviceObject>) {
    must_be_physical(context, physical.0);
    let routine = context.call().return_address;
    threads::queue_body(context, routine, move |context| life::state_changed(context, physical.0));
}

/// Makes the Plug and Play manager query a device's relations later, on a separate thread.
fn invalidate_relations(context: &Context, physical: At<DeviceObject>, kind: u32) {
    must_be_physical(context, physical.0);
    let routine = context.call().return_address;
    threads::queue_body(context, routine, move |context| {
        life::relations_changed(context, physical.0, kind);
    });
}
