//! Events with handles, and optionally with names.

use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, abi::DispatcherHeader, arena::Block, irql::Irql},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            dispatcher::{self, set_state_boosting},
            header::{header_of, initialize, kind},
        },
        ob::{
            directories,
            handles::{self, Target},
            object_attributes::{self, Attributes, OPEN_IF},
        },
    },
};
use std::collections::{HashMap, HashSet};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ZwCreateEvent", PASSIVE, Routine::of(create)),
    ("ZwOpenEvent", PASSIVE, Routine::of(open)),
    ("ZwSetEvent", DISPATCH, Routine::of(set)),
    ("ZwWaitForSingleObject", DISPATCH, Routine::of(wait)),
    ("ZwWaitForMultipleObjects", DISPATCH, Routine::of(wait_for_several)),
];

const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);
const INVALID_PARAMETER_MIX: NtStatus = NtStatus::from_bits(0xC000_0030);
const INVALID_PARAMETER_1: NtStatus = NtStatus::from_bits(0xC000_00EF);
const INVALID_PARAMETER_3: NtStatus = NtStatus::from_bits(0xC000_00F1);
const INVALID_PARAMETER_4: NtStatus = NtStatus::from_bits(0xC000_00F2);

/// `NotificationEvent` and `SynchronizationEvent`.
pub const NOTIFICATION: u32 = 0;

pub const SYNCHRONIZATION: u32 = 1;

/// The events, by object address. Their handles have no access rights, because Windows checks
/// rights only for processes.
#[derive(Default)]
struct Events(HashMap<u64, Event>);

struct Event {
    /// The name as it was written, while a handle is open.
    name: Option<String>,
    _memory: Block,
}

/// Returns the name that attributes specify, or `None` if there is no name.
fn name_of(context: &Context, attributes: &Attributes) -> NtResult<Option<String>> {
    valid(context, &directories::full_name(context, attributes)?)
}

/// Returns the name if it is valid for an event, or `None` if it is empty.
pub fn valid(context: &Context, name: &str) -> NtResult<Option<String>> {
    if name.is_empty() {
        return Ok(None);
    }
    let (directory, _) = directories::split(name)?;
    if !directories::exists(context, directory) {
        return Err(OBJECT_PATH_NOT_FOUND);
    }
    Ok(Some(name.to_owned()))
}

fn find(context: &Context, name: &str) -> Option<u64> {
    let wanted = directories::key(name);
    let mut named = named(context).into_iter();
    named.find(|(_, name)| directories::key(name) == wanted).map(|(object, _)| object)
}

/// Returns the named events, with the names as they were written.
pub fn named(context: &Context) -> Vec<(u64, String)> {
    let mut state = context.state();
    let all = state.get::<Events>().0.iter();
    all.filter_map(|(object, event)| Some((*object, event.name.clone()?))).collect()
}

/// Creates an event, for which the caller must open a handle.
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

/// Opens a handle to an event. Closing the last handle removes the name.
pub fn open_handle(context: &Context, object: u64) -> u64 {
    let target = Target { type_name: "ExEventObjectType", object, close, has_reference: false };
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

/// Creates an event, or finds the event with the name. Returns the event and whether it is new.
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
    handle: At<u64>,
    _mask: u32,
    attributes: u64,
    its_kind: u32,
    state: bool,
) -> NtResult<NtStatus> {
    /// `REALTIME_OBJECT_FLAG`, with which waits end in order of priority.
    const REALTIME: u32 = 0x8000_0000;
    let its_kind = its_kind & !REALTIME;
    if its_kind > SYNCHRONIZATION {
        return Err(INVALID_PARAMETER_4);
    }
    let attributes = (attributes != 0).then(|| object_attributes::read(context, attributes));
    let attributes = attributes.transpose()?;
    let name = attributes.as_ref().map_or(Ok(None), |one| name_of(context, one))?;
    let may_exist = attributes.is_some_and(|attributes| attributes.flags & OPEN_IF != 0);
    if !may_exist && name.as_deref().is_some_and(|name| find(context, name).is_some()) {
        return Err(NtStatus::OBJECT_NAME_COLLISION);
    }
    let (object, is_new) = create_named(context, name, its_kind, state);
    handle.write(context, open_handle(context, object));
    Ok(if is_new { NtStatus::SUCCESS } else { NtStatus::OBJECT_NAME_EXISTS })
}

fn open(context: &Context, handle: At<u64>, _mask: u32, attributes: u64) -> NtResult {
    let attributes = object_attributes::read(context, attributes)?;
    let name = name_of(context, &attributes)?.ok_or(NtStatus::OBJECT_PATH_SYNTAX_BAD)?;
    let object = find(context, &name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    handle.write(context, open_handle(context, object));
    Ok(())
}

fn event_of(context: &Context, handle: u64) -> NtResult<u64> {
    let target = handles::target(context, handle).ok_or(NtStatus::INVALID_HANDLE)?;
    let is_event = context.state().get::<Events>().0.contains_key(&target.object);
    is_event.then_some(target.object).ok_or(NtStatus::OBJECT_TYPE_MISMATCH)
}

fn set(context: &Context, handle: u64, previous: At<i32>) -> NtResult {
    /// `EVENT_INCREMENT`.
    const EVENT_INCREMENT: i32 = 1;
    let object = event_of(context, handle)?;
    header_of(context, object, &[kind::NOTIFICATION_EVENT, kind::SYNCHRONIZATION_EVENT]);
    previous.write_optional(context, set_state_boosting(context, object, 1, EVENT_INCREMENT));
    Ok(())
}

/// The types of waitable objects other than events.
const WAITABLE_TYPES: [&str; 2] = ["PsThreadType", "PsProcessType"];

/// Returns the event, thread or process of a handle.
fn waitable(context: &Context, handle: u64) -> NtResult<u64> {
    match handles::target_of(context, handle)? {
        target if WAITABLE_TYPES.contains(&target.type_name) => Ok(target.object),
        _ => event_of(context, handle),
    }
}

fn wait(context: &Context, handle: u64, _alertable: bool, timeout: At<i64>) -> NtResult<NtStatus> {
    let timeout = timeout.read_optional(context);
    let object = waitable(context, handle)?;
    Ok(dispatcher::wait(context, vec![object], false, timeout))
}

/// Waits for one or all of the objects that handles refer to.
fn wait_for_several(
    context: &Context,
    count: u32,
    handles: u64,
    wait_type: u32,
    _alertable: bool,
    timeout: At<i64>,
) -> NtResult<NtStatus> {
    /// `MAXIMUM_WAIT_OBJECTS`.
    const MAXIMUM: u32 = 64;
    /// `WaitAll` and `WaitAny`.
    const ALL: u32 = 0;
    const ANY: u32 = 1;
    if !(1..=MAXIMUM).contains(&count) {
        return Err(INVALID_PARAMETER_1);
    }
    if ![ALL, ANY].contains(&wait_type) {
        return Err(INVALID_PARAMETER_3);
    }
    let timeout = timeout.read_optional(context);
    let handle = |number: u32| context.read(handles.wrapping_add(u64::from(number) * 8));
    let objects = (0..count).map(|number| waitable(context, handle(number)));
    let objects = objects.collect::<NtResult<Vec<u64>>>()?;
    let different: HashSet<&u64> = objects.iter().collect();
    if wait_type == ALL && different.len() < objects.len() {
        return Err(INVALID_PARAMETER_MIX);
    }
    Ok(dispatcher::wait(context, objects, wait_type == ALL, timeout))
}
