//! Callback objects, with which drivers notify each other.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, arena::Block, irql::Irql},
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            crt::letters::upcase,
            ob::handles,
        },
        strings::read_unicode_string,
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExCreateCallback", APC, Routine::of(create)),
    ("ExRegisterCallback", APC, Routine::of(register)),
    ("ExUnregisterCallback", APC, Routine::of(unregister)),
    ("ExNotifyCallback", Irql::DISPATCH_LEVEL, Routine::of(notify)),
];

/// The objects that every system has.
const PREDEFINED: [&str; 3] =
    [r"\Callback\PowerState", r"\Callback\ProcessorAdd", r"\Callback\SetSystemTime"];

#[derive(Default)]
struct Callbacks {
    /// The objects, by address.
    objects: BTreeMap<u64, Object>,
    /// The registrations, oldest first, by address.
    registrations: Vec<(u64, Registration)>,
}

struct Object {
    /// The name in upper case.
    name: Option<String>,
    /// Set if any number of routines can be registered.
    multiple: bool,
    _memory: Block,
}

struct Registration {
    object: u64,
    routine: u64,
    context: u64,
    _memory: Block,
}

/// The offset of the name in `OBJECT_ATTRIBUTES`.
const NAME: u64 = 16;

/// Creates an object, or opens the object with this name.
fn create(
    context: &Context,
    object: At<u64>,
    attributes: u64,
    may_create: bool,
    multiple: bool,
) -> NtResult {
    let name_address: u64 = context.read(attributes.wrapping_add(NAME));
    let name = (name_address != 0).then(|| {
        let name = read_unicode_string(context, name_address);
        let units: Vec<u16> = name.encode_utf16().map(upcase).collect();
        String::from_utf16_lossy(&units)
    });
    let found = context.with_state(|Callbacks { objects, .. }| {
        let existing = objects.iter().find(|(_, one)| name.is_some() && one.name == name);
        if let Some((address, _)) = existing {
            return Some(*address);
        }
        let is_name = |one: &&str| name.as_deref() == Some(&*one.to_uppercase());
        if !may_create && !PREDEFINED.iter().any(is_name) {
            return None;
        }
        let memory = Block::zeroed(0x40);
        let address = memory.address();
        let one = Object { name, multiple: multiple || !may_create, _memory: memory };
        objects.insert(address, one);
        Some(address)
    });
    let address = found.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
    handles::reference(context, address);
    object.write(context, address);
    Ok(())
}

/// Registers a routine. Returns null if the object allows only one routine and has one.
fn register(context: &Context, object: u64, routine: u64, its_context: u64) -> u64 {
    let registered = context.with_state(|Callbacks { objects, registrations }| {
        let multiple = objects.get(&object)?.multiple;
        if !multiple && registrations.iter().any(|(_, one)| one.object == object) {
            return Some(0);
        }
        let memory = Block::zeroed(0x40);
        let address = memory.address();
        let registration = Registration { object, routine, context: its_context, _memory: memory };
        registrations.push((address, registration));
        Some(address)
    });
    registered.unwrap_or_else(|| context.stop_for_wrong(object, "a callback object"))
}

fn unregister(context: &Context, registration: u64) {
    let removed = context.with_state(|all: &mut Callbacks| {
        all.registrations.extract_if(.., |(address, _)| *address == registration).count()
    });
    if removed == 0 {
        context.stop_for_wrong(registration, "a registration");
    }
}

/// Calls the registered routines in the order in which they were registered.
fn notify(context: &Context, object: u64, argument_1: u64, argument_2: u64) {
    let routines: Vec<(u64, u64)> = context.with_state(|all: &mut Callbacks| {
        let registered = all.registrations.iter().filter(|(_, one)| one.object == object);
        registered.map(|(_, one)| (one.routine, one.context)).collect()
    });
    for (routine, its_context) in routines {
        let arguments = [its_context, argument_1, argument_2];
        context.call_driver("the callback object's routine", routine, arguments);
    }
}

/// Returns the named objects, with the names in upper case.
pub fn named(context: &Context) -> Vec<(u64, String)> {
    let mut state = context.state();
    let all = state.get::<Callbacks>().objects.iter();
    all.filter_map(|(object, one)| Some((*object, one.name.clone()?))).collect()
}

/// Removes the registrations of a driver's routines, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|all: &mut Callbacks| {
        all.registrations.extract_if(.., |(_, one)| belongs(one.routine)).count()
    })
}
