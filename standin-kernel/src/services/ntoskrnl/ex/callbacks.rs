//! Callback objects, with which drivers tell each other what happens.

use std::collections::BTreeMap;

use crate::{
    execution::routine::Routine,
    ground::{arena::Block, irql::Irql, status::NtStatus},
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
    ("ExCreateCallback", APC, Routine::Four(create)),
    ("ExRegisterCallback", APC, Routine::Three(register)),
    ("ExUnregisterCallback", APC, Routine::One(unregister)),
    ("ExNotifyCallback", Irql::DISPATCH_LEVEL, Routine::Three(notify)),
];

/// The objects that every system has.
const PREDEFINED: [&str; 3] =
    [r"\Callback\PowerState", r"\Callback\ProcessorAdd", r"\Callback\SetSystemTime"];

#[derive(Default)]
struct Callbacks {
    /// The objects by address.
    objects: BTreeMap<u64, Object>,
    /// The registrations, oldest first, by address.
    registrations: Vec<(u64, Registration)>,
}

struct Object {
    /// The name in capitals.
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

/// Creates an object, or opens one of this name.
fn create(context: &Context, object: u64, attributes: u64, create: u64, multiple: u64) -> u64 {
    let name_address: u64 = context.read(attributes.wrapping_add(NAME));
    let name = (name_address != 0).then(|| {
        let name = read_unicode_string(context, name_address);
        let units: Vec<u16> = name.encode_utf16().map(upcase).collect();
        String::from_utf16_lossy(&units)
    });
    let may_create = create & 0xFF != 0;
    let found = {
        let mut state = context.state();
        let objects = &mut state.get::<Callbacks>().objects;
        let existing = objects.iter().find(|(_, one)| name.is_some() && one.name == name);
        let existing = existing.map(|(address, _)| *address);
        let is_predefined = || {
            let is_name = |one: &str| name.as_deref() == Some(&*one.to_uppercase());
            PREDEFINED.iter().any(|one| is_name(one))
        };
        match existing {
            Some(address) => Some(address),
            None if may_create || is_predefined() => {
                let memory = Block::zeroed(0x40);
                let address = memory.address();
                let one =
                    Object { name, multiple: multiple & 0xFF != 0 || !may_create, _memory: memory };
                objects.insert(address, one);
                Some(address)
            }
            None => None,
        }
    };
    let Some(address) = found else {
        return NtStatus::OBJECT_NAME_NOT_FOUND.to_register();
    };
    handles::reference(context, address);
    context.write(object, &address);
    NtStatus::SUCCESS.to_register()
}

/// Registers a routine. Returns null if the object has one and takes no more.
fn register(context: &Context, object: u64, routine: u64, its_context: u64) -> u64 {
    let mut state = context.state();
    let callbacks = state.get::<Callbacks>();
    let Some(multiple) = callbacks.objects.get(&object).map(|one| one.multiple) else {
        drop(state);
        context.stop_for_misuse(&format!("with 0x{object:016X}, which is not a callback object"));
    };
    let mut registered = callbacks.registrations.iter();
    if !multiple && registered.any(|(_, one)| one.object == object) {
        return 0;
    }
    let memory = Block::zeroed(0x40);
    let address = memory.address();
    let registration = Registration { object, routine, context: its_context, _memory: memory };
    callbacks.registrations.push((address, registration));
    address
}

fn unregister(context: &Context, registration: u64) -> u64 {
    let removed = {
        let mut state = context.state();
        let all = &mut state.get::<Callbacks>().registrations;
        let at = all.iter().position(|(address, _)| *address == registration);
        at.map(|at| all.remove(at))
    };
    if removed.is_none() {
        context
            .stop_for_misuse(&format!("with 0x{registration:016X}, which is not a registration"));
    }
    0
}

/// Calls the registered routines in the order of their registration.
fn notify(context: &Context, object: u64, argument_1: u64, argument_2: u64) -> u64 {
    let routines: Vec<(u64, u64)> = {
        let mut state = context.state();
        let all = state.get::<Callbacks>().registrations.iter();
        all.filter(|(_, one)| one.object == object)
            .map(|(_, one)| (one.routine, one.context))
            .collect()
    };
    for (routine, its_context) in routines {
        let arguments = [its_context, argument_1, argument_2];
        context.call_driver("the callback object's routine", routine, arguments);
    }
    0
}

/// Takes the registrations of a driver's routines, and returns how many there were.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    let mut state = context.state();
    let registrations = &mut state.get::<Callbacks>().registrations;
    let before = registrations.len();
    registrations.retain(|(_, one)| !belongs(one.routine));
    before - registrations.len()
}
