//! Named events created by `IoCreateNotificationEvent` and `IoCreateSynchronizationEvent`.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Out, routine},
        strings::read_unicode_string,
    },
    ground::{abi::UnicodeString, opaque::KernelEvent},
    services::ntoskrnl::{
        context::{Context, Entries},
        ex::named_events::{NOTIFICATION, SYNCHRONIZATION, TYPE, create_at, open_handle},
        ob::{
            handles::Opening,
            namespace::{self, Place},
            object_attributes::OPEN_IF,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoCreateNotificationEvent", create_notification),
    routine("IoCreateSynchronizationEvent", create_synchronization),
];

/// Creates a signaled event, or opens the existing event with this name. Returns the event, or null
/// if the name is invalid or is the name of an object of another type.
fn io_create(context: &Context, name: u64, handle: u64, event_type: u32) -> u64 {
    let place = if name == 0 {
        Ok(Place::New(None))
    } else {
        let name = read_unicode_string(context, name);
        namespace::place(&mut context.state(), &name, TYPE, OPEN_IF)
    };
    let Ok(place) = place else {
        return 0;
    };
    let object = create_at(context, place, event_type, true);
    context.write(handle, &open_handle(context, object, Opening::KERNEL));
    object
}

fn create_notification(
    context: &Context,
    name: At<UnicodeString>,
    handle: Out<NtObject>,
) -> At<KernelEvent> {
    At::new(io_create(context, name.0, handle.0, NOTIFICATION))
}

fn create_synchronization(
    context: &Context,
    name: At<UnicodeString>,
    handle: Out<NtObject>,
) -> At<KernelEvent> {
    At::new(io_create(context, name.0, handle.0, SYNCHRONIZATION))
}
