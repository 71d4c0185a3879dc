//! Callback objects. Drivers use them to notify each other.

use std::collections::BTreeMap;

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{NtResult, NtStatus, abi::ObjectAttributesNt, arena::Block, opaque::CallbackObject},
    services::ntoskrnl::{
        context::{Context, Entries},
        ob::{
            handles,
            namespace::{self, CALLBACK, Place},
            object_attributes,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("ExCreateCallback", create),
    routine("ExRegisterCallback", register),
    routine("ExUnregisterCallback", unregister),
    routine("ExNotifyCallback", notify),
];

#[derive(Default)]
struct Callbacks {
    /// The objects, by address.
    objects: BTreeMap<u64, Object>,
    /// The registrations, oldest first, by address.
    registrations: Vec<(u64, Registration)>,
}

struct Object {
    /// Set if any number of routines can be registered.
    multiple: bool,
    /// The memory, unless the object exists from the start.
    _memory: Option<Block>,
}

struct Registration {
    object: u64,
    routine: u64,
    context: u64,
    _memory: Block,
}

/// Creates an object, or opens the object with this name.
fn create(
    context: &Context,
    object: At<u64>,
    attributes: At<ObjectAttributesNt>,
    may_create: bool,
    multiple: bool,
) -> NtResult {
    let attributes = object_attributes::read(context, attributes.0)?;
    let opened = if attributes.name.is_empty() {
        Err(NtStatus::UNSUCCESSFUL)
    } else {
        namespace::open(context, &attributes, CALLBACK)
    };
    let place = match opened {
        Ok(existing) => Place::Existing(existing),
        Err(status) if !may_create => return Err(status),
        Err(_) => namespace::place_for(context, Some(&attributes), CALLBACK)?,
    };
    let mut state = context.state();
    let address = match place {
        Place::Existing(address) => {
            let objects = &mut state.get::<Callbacks>().objects;
            objects.entry(address).or_insert(Object { multiple: true, _memory: None });
            address
        }
        Place::New(name) => {
            let memory = Block::zeroed(0x40);
            let address = memory.address();
            let one = Object { multiple, _memory: Some(memory) };
            state.get::<Callbacks>().objects.insert(address, one);
            if let Some(name) = name {
                namespace::enter(&mut state, &name, address, CALLBACK);
            }
            address
        }
    };
    drop(state);
    handles::reference(context, At::new(address));
    object.write(context, address);
    Ok(())
}

/// Registers a routine. Returns null if the object allows only one routine and already has one.
fn register(
    context: &Context,
    object: At<CallbackObject>,
    routine: Callback,
    callback_context: Memory,
) -> Memory {
    let registered = context.with_state(|Callbacks { objects, registrations }| {
        let multiple = objects.get(&object.0)?.multiple;
        if !multiple && registrations.iter().any(|(_, one)| one.object == object.0) {
            return Some(0);
        }
        let memory = Block::zeroed(0x40);
        let address = memory.address();
        let registration = Registration {
            object: object.0,
            routine: routine.0,
            context: callback_context.0,
            _memory: memory,
        };
        registrations.push((address, registration));
        Some(address)
    });
    At::new(registered.unwrap_or_else(|| context.stop_for_wrong(object.0, "a callback object")))
}

fn unregister(context: &Context, registration: Memory) {
    let removed = context.with_state(|all: &mut Callbacks| {
        all.registrations.extract_if(.., |(address, _)| *address == registration.0).count()
    });
    if removed == 0 {
        context.stop_for_wrong(registration.0, "a registration");
    }
}

/// Calls the registered routines in the order in which they were registered.
fn notify(context: &Context, object: Memory, argument_1: Memory, argument_2: Memory) {
    let routines: Vec<(u64, u64)> = context.with_state(|all: &mut Callbacks| {
        let registered = all.registrations.iter().filter(|(_, one)| one.object == object.0);
        registered.map(|(_, one)| (one.routine, one.context)).collect()
    });
    for (routine, callback_context) in routines {
        let arguments = [callback_context, argument_1.0, argument_2.0];
        context.call_driver("the callback object's routine", routine, arguments);
    }
}

/// Removes the registrations of a driver's routines, and returns their number.
pub fn take_left(context: &Context, belongs: impl Fn(u64) -> bool) -> usize {
    context.with_state(|all: &mut Callbacks| {
        all.registrations.extract_if(.., |(_, one)| belongs(one.routine)).count()
    })
}
