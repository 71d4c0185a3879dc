//! Named events created by `IoCreateNotificationEvent` and `IoCreateSynchronizationEvent`.

use crate::{
    execution::routine::Routine,
    ground::irql::Irql,
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            ob::{
                namespace::{self, Place},
                object_attributes::OPEN_IF,
            },
            zw::events::{NOTIFICATION, SYNCHRONIZATION, TYPE, create_at, open_handle},
        },
        strings::read_unicode_string,
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoCreateNotificationEvent", PASSIVE, Routine::of(create_notification)),
    ("IoCreateSynchronizationEvent", PASSIVE, Routine::of(create_synchronization)),
];

/// Creates a signaled event, or opens the existing event with this name. Returns the event, or null
/// if the name is invalid or is the name of an object of another type.
fn io_create(context: &Context, name: u64, handle: u64, its_kind: u32) -> u64 {
    let place = if name == 0 {
        Ok(Place::New(None))
    } else {
        let name = read_unicode_string(context, name);
        namespace::place(&mut context.state(), &name, TYPE, OPEN_IF)
    };
    let Ok(place) = place else {
        return 0;
    };
    let object = create_at(context, place, its_kind, true);
    context.write(handle, &open_handle(context, object));
    object
}

fn create_notification(context: &Context, name: u64, handle: u64) -> u64 {
    io_create(context, name, handle, NOTIFICATION)
}

fn create_synchronization(context: &Context, name: u64, handle: u64) -> u64 {
    io_create(context, name, handle, SYNCHRONIZATION)
}
