//! Events with handles, which may have names.

use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::DispatcherHeader, arena::Block, irql::Irql, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            dispatcher::{self, set_state},
            header::{header_of, initialize, kind},
            thread_objects,
        },
        ob::{
            handles::{self, CURRENT_THREAD, Target},
            object_attributes::{self, Attributes, OPEN_IF},
        },
    },
};
use std::collections::HashMap;

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ZwCreateEvent", PASSIVE, Routine::Five(create)),
    ("ZwOpenEvent", PASSIVE, Routine::Three(open)),
    ("ZwSetEvent", DISPATCH, Routine::Two(set)),
    ("ZwWaitForSingleObject", DISPATCH, Routine::Three(wait)),
];

const OBJECT_NAME_INVALID: NtStatus = NtStatus::from_bits(0xC000_0033);
const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);
const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);

/// The directories in which events can be, with the root first.
const DIRECTORIES: [&str; 5] = ["", "BaseNamedObjects", "Callback", "KernelObjects", "Device"];

/// `NotificationEvent` and `SynchronizationEvent`.
pub const NOTIFICATION: u32 = 0;

pub const SYNCHRONIZATION: u32 = 1;

/// The events by their objects' addresses. Their handles have no rights, which Windows compares for
/// processes only.
#[derive(Default)]
struct Events(HashMap<u64, Event>);

struct Event {
    /// The name in capitals, while a handle is open.
    name: Option<String>,
    _memory: Block,
}

/// Returns the name that attributes give in the form that is compared, or `None` without a name.
fn name_of(attributes: &Attributes) -> Result<Option<String>, NtStatus> {
    if attributes.root != 0 {
        // No directory has a handle here.
        return Err(NtStatus::INVALID_HANDLE);
    }
    canonical(&attributes.name)
}

/// Returns a name in the form that is compared, or `None` for an empty one.
pub fn canonical(name: &str) -> Result<Option<String>, NtStatus> {
    if name.is_empty() {
        return Ok(None);
    }
    let rest = name.strip_prefix('\\').ok_or(NtStatus::OBJECT_PATH_SYNTAX_BAD)?;
    let (directory, last) = rest.rsplit_once('\\').unwrap_or(("", rest));
    if last.is_empty() {
        return Err(OBJECT_NAME_INVALID);
    }
    let mut directories = DIRECTORIES.iter();
    if !directories.any(|one| one.eq_ignore_ascii_case(directory)) {
        return Err(OBJECT_PATH_NOT_FOUND);
    }
    Ok(Some(name.to_uppercase()))
}

fn find(context: &Context, name: &str) -> Option<u64> {
    let mut state = context.state();
    let mut all = state.get::<Events>().0.iter();
    let found = all.find(|(_, event)| event.name.as_deref() == Some(name));
    found.map(|(object, _)| *object)
}

/// Creates an event, which needs a handle.
fn new_event(context: &Context, name: Option<String>, its_kind: u32, is_signaled: bool) -> u64 {
    let memory = Block::zeroed(size_of::<DispatcherHeader>());
    let object = memory.address();
    let event = Event { name, _memory: memory };
    context.state().get::<Events>().0.insert(object, event);
    let its_kind = if its_kind == NOTIFICATION {
        kind::NOTIFICATION_EVENT
    } else {
        kind::SYNCHRONIZATION_EVENT
    };
    let size = size_of::<DispatcherHeader>();
    initialize(context, object, its_kind, size, i32::from(is_signaled));
    handles::own(context, object, |context, object| {
        context.state().get::<Events>().0.remove(&object);
    });
    object
}

/// Opens a handle of an event. Only the last one that is closed takes the name with it.
pub fn open_handle(context: &Context, object: u64) -> u64 {
    let target = Target { type_name: "ExEventObjectType", object, close };
    handles::open(context, target)
}

fn close(context: &Context, object: u64) {
    if handles::count(context, object) == 0 {
        let mut state = context.state();
        if let Some(event) = state.get::<Events>().0.get_mut(&object) {
            event.name = None;
        }
    }
}

/// Creates an event, or opens that of the name. Returns the event and whether it is new.
pub fn create_named(
    context: &Context,
    name: Option<String>,
    its_kind: u32,
    is_signaled: bool,
) -> (u64, bool) {
    let existing = name.as_deref().and_then(|name| find(context, name));
    existing.map_or_else(
        || (new_event(context, name, its_kind, is_signaled), true),
        |object| (object, false),
    )
}

fn create(
    context: &Context,
    handle: u64,
    _mask: u64,
    attributes: u64,
    its_kind: u64,
    state: u64,
) -> u64 {
    /// `REALTIME_OBJECT_FLAG`, by which waits end in the order of priorities.
    const REALTIME: u32 = 0x8000_0000;
    let its_kind = low_half(its_kind) & !REALTIME;
    if its_kind > SYNCHRONIZATION {
        return INVALID_PARAMETER_4.to_register();
    }
    let (name, flags) = if attributes == 0 {
        (Ok(None), 0)
    } else {
        match object_attributes::read(context, attributes) {
            Ok(attributes) => (name_of(&attributes), attributes.flags),
            Err(status) => return status.to_register(),
        }
    };
    let name = match name {
        Ok(name) => name,
        Err(status) => return status.to_register(),
    };
    let exists = name.as_deref().and_then(|name| find(context, name));
    if exists.is_some() && flags & OPEN_IF == 0 {
        return NtStatus::OBJECT_NAME_COLLISION.to_register();
    }
    let (object, is_new) = create_named(context, name, its_kind, state & 0xFF != 0);
    let value = open_handle(context, object);
    context.write(handle, &value);
    if is_new {
        NtStatus::SUCCESS.to_register()
    } else {
        NtStatus::OBJECT_NAME_EXISTS.to_register()
    }
}

fn open(context: &Context, handle: u64, _mask: u64, attributes: u64) -> u64 {
    let found = object_attributes::read(context, attributes).and_then(|attributes| {
        let name = name_of(&attributes)?.ok_or(NtStatus::OBJECT_PATH_SYNTAX_BAD)?;
        find(context, &name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
    });
    match found {
        Ok(object) => {
            let value = open_handle(context, object);
            context.write(handle, &value);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

/// Returns the event of a handle.
fn event_of(context: &Context, handle: u64) -> Result<u64, NtStatus> {
    let target = handles::target(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
    let mut state = context.state();
    if state.get::<Events>().0.contains_key(&target.object) {
        Ok(target.object)
    } else {
        Err(NtStatus::OBJECT_TYPE_MISMATCH)
    }
}

fn set(context: &Context, handle: u64, previous: u64) -> u64 {
    let object = match event_of(context, handle) {
        Ok(object) => object,
        Err(status) => return status.to_register(),
    };
    header_of(context, object, &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT]);
    let before = set_state(context, object, 1);
    if previous != 0 {
        context.write(previous, &before);
    }
    NtStatus::SUCCESS.to_register()
}

/// Waits for the event or thread of a handle.
fn wait(context: &Context, handle: u64, _alertable: u64, timeout: u64) -> u64 {
    let timeout: Option<i64> = (timeout != 0).then(|| context.read(timeout));
    let object = if handle == CURRENT_THREAD {
        Ok(thread_objects::current(context))
    } else {
        match handles::target(context, handle) {
            None => Err(NtStatus::INVALID_HANDLE),
            Some(target) if target.type_name == "PsThreadType" => Ok(target.object),
            Some(_) => event_of(context, handle),
        }
    };
    match object {
        Ok(object) => dispatcher::wait(context, vec![object], false, timeout).to_register(),
        Err(status) => status.to_register(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_directories_that_exist() {
        for (name, expected) in [
            ("", Ok(None)),
            (r"\X", Ok(Some(r"\X"))),
            (r"\BaseNamedObjects\Event", Ok(Some(r"\BASENAMEDOBJECTS\EVENT"))),
            ("Event", Err(NtStatus::OBJECT_PATH_SYNTAX_BAD)),
            (r"\Nowhere\Event", Err(OBJECT_PATH_NOT_FOUND)),
            (r"\KernelObjects\", Err(OBJECT_NAME_INVALID)),
        ] {
            let found = canonical(name);
            assert_eq!(found, expected.map(|name| name.map(str::to_owned)), "{name}");
        }
    }
}
