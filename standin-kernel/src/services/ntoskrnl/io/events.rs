//! Named events created by `IoCreateNotificationEvent` and `IoCreateSynchronizationEvent`.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            zw::events::{NOTIFICATION, SYNCHRONIZATION, create_named, open_handle, valid},
        },
        strings::read_unicode_string,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoCreateNotificationEvent", PASSIVE, Routine::of(create_notification)),
    ("IoCreateSynchronizationEvent", PASSIVE, Routine::of(create_synchronization)),
];

/// Creates a signaled event, or opens the existing event with the name. Returns the event, or null if
/// the name is invalid.
fn io_create(context: &Context, name: u64, handle: u64, its_kind: u32) -> u64 {
    let name =
        if name == 0 { Ok(None) } else { valid(context, &read_unicode_string(context, name)) };
    let Ok(name) = name else {
        return 0;
    };
    let (object, _) = create_named(context, name, its_kind, true);
    context.write(handle, &open_handle(context, object));
    object
}

fn create_notification(context: &Context, name: u64, handle: u64) -> u64 {
    io_create(context, name, handle, NOTIFICATION)
}

fn create_synchronization(context: &Context, name: u64, handle: u64) -> u64 {
    io_create(context, name, handle, SYNCHRONIZATION)
}
