//! Events with handles, and optionally with names.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{DispatcherHeader, ObjectAttributesNt},
        arena::Block,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            dispatcher::{self, set_state_boosting},
            header::{header_of, initialize, kind},
        },
        ob::{
            handles::{self, Opening, Target},
            namespace::{self, Place},
            object_attributes,
        },
    },
};
use std::collections::HashMap;

pub const ENTRIES: Entries =
    &[routine("ZwCreateEvent", create), routine("ZwOpenEvent", open), routine("ZwSetEvent", set)];

const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);

/// `NotificationEvent` and `SynchronizationEvent`.
pub const NOTIFICATION: u32 = 0;

pub const SYNCHRONIZATION: u32 = 1;

/// The memory of the events, by object address.
#[derive(Default)]
struct Events(HashMap<u64, Block>);

/// The name of the object type of events.
pub const TYPE: &str = "ExEventObjectType";

/// Creates an event at its place, or finds the event that is already there. The caller must open a
/// handle.
pub fn create_at(context: &Context, place: Place, event_type: u32, is_signaled: bool) -> u64 {
    let name = match place {
        Place::Existing(object) => return object,
        Place::New(name) => name,
    };
    let memory = Block::zeroed(size_of::<DispatcherHeader>());
    let object = memory.address();
    let mut state = context.state();
    state.get::<Events>().0.insert(object, memory);
    if let Some(name) = name {
        namespace::enter(&mut state, &name, object, TYPE);
    }
    drop(state);
    let event_type = if event_type == NOTIFICATION {
        kind::NOTIFICATION_EVENT
    } else {
        kind::SYNCHRONIZATION_EVENT
    };
    let size = size_of::<DispatcherHeader>();
    initialize(context, object, event_type, size, i32::from(is_signaled));
    handles::own(context, object, |context, object| {
        context.state().get::<Events>().0.remove(&object);
    });
    object
}

/// Opens a handle to an event. Closing the last handle removes the name.
pub fn open_handle(context: &Context, object: u64, opening: Opening) -> u64 {
    let target = Target { type_name: TYPE, object, close, has_reference: false };
    handles::open(context, target, opening)
}

fn close(context: &Context, object: u64) {
    if handles::count(context, object) == 0 {
        namespace::remove(&mut context.state(), object);
    }
}

fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    event_type: u32,
    state: bool,
) -> NtResult<NtStatus> {
    /// `REALTIME_OBJECT_FLAG`, which makes waits end in order of priority.
    const REALTIME: u32 = 0x8000_0000;
    let event_type = event_type & !REALTIME;
    if event_type > SYNCHRONIZATION {
        return Err(INVALID_PARAMETER_4);
    }
    let attributes = object_attributes::read_optional(context, attributes.0)?;
    let place = namespace::place_for(context, attributes.as_ref(), TYPE)?;
    let status = place.status();
    let object = create_at(context, place, event_type, state);
    let attributes = attributes.map_or(0, |attributes| attributes.flags);
    handle.write(context, open_handle(context, object, Opening { attributes, access }));
    Ok(status)
}

fn open(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
) -> NtResult {
    let attributes = object_attributes::read(context, attributes.0)?;
    let object = namespace::open(context, &attributes, TYPE)?;
    let opening = Opening { attributes: attributes.flags, access };
    handle.write(context, open_handle(context, object, opening));
    Ok(())
}

/// Returns the event of a handle.
pub fn event_of(context: &Context, handle: u64) -> NtResult<u64> {
    let target = handles::target(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
    let is_event = context.state().get::<Events>().0.contains_key(&target.object);
    is_event.then_some(target.object).ok_or(NtStatus::OBJECT_TYPE_MISMATCH)
}

fn set(context: &Context, handle: Handle<NtObject>, previous: At<i32>) -> NtResult {
    /// The priority boost that `ZwSetEvent` gives (wdm.h).
    const EVENT_INCREMENT: i32 = 1;
    let object = event_of(context, handle.0)?;
    header_of(context, object, &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT]);
    previous.write_optional(context, set_state_boosting(context, object, 1, EVENT_INCREMENT));
    Ok(())
}

/// Resets the event of a handle that may be null, and returns the event.
pub fn reset_optional(context: &Context, handle: u64) -> NtResult<Option<u64>> {
    if handle == 0 {
        return Ok(None);
    }
    let object = event_of(context, handle)?;
    dispatcher::set_state(context, object, 0);
    Ok(Some(object))
}
