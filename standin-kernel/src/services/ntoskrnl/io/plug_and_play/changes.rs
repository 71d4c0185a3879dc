//! The routines by which drivers tell the plug-and-play manager that something has changed.

use super::life;
use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::threads,
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoInvalidateDeviceState", DISPATCH, Routine::of(invalidate_state)),
    ("IoInvalidateDeviceRelations", DISPATCH, Routine::of(invalidate_relations)),
];

/// Bugchecks if an address is not that of the physical device of a stack.
fn must_be_physical(context: &Context, device: u64) {
    if context.devices().node(device).is_none() {
        context.stop_for_wrong(device, "the physical device object of a device");
    }
}

/// Has the plug-and-play manager ask for a device's state, later and in a thread of its own.
fn invalidate_state(context: &Context, physical: u64) {
    must_be_physical(context, physical);
    let routine = context.call().return_address;
    threads::queue_body(context, routine, move |context| life::state_changed(context, physical));
}

/// Has the plug-and-play manager ask for a device's relations, later and in a thread of its own.
fn invalidate_relations(context: &Context, physical: u64, kind: u32) {
    must_be_physical(context, physical);
    let routine = context.call().return_address;
    threads::queue_body(context, routine, move |context| {
        life::relations_changed(context, physical, kind);
    });
}
