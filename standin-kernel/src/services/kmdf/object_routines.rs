//! The `WdfObject*` routines.

use super::{
    driver::driver_of,
    object::{add_context, add_reference, create_from, delete, destroy, unique_type},
    state::framework::{BadHandle, Context, Entries, General},
};
use crate::{
    execution::routine::Routine,
    ground::{
        NtResult,
        abi::{ContextTypeInfo, ObjectAttributes},
        rule::Rule,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfObjectCreate", Routine::after_globals(object_create)),
    ("WdfObjectDelete", Routine::after_globals(object_delete)),
    ("WdfObjectGetTypedContextWorker", Routine::after_globals(get_typed_context)),
    ("WdfObjectAllocateContext", Routine::after_globals(allocate_context)),
    ("WdfObjectContextGetObject", Routine::after_globals(context_get_object)),
    ("WdfObjectReferenceActual", Routine::after_globals(reference)),
    ("WdfObjectDereferenceActual", Routine::after_globals(dereference)),
];

fn object_create(context: &Context, attributes: u64, object: u64) -> NtResult {
    let handle = create_from(context, General, attributes, driver_of(context))?;
    context.write(object, &handle);
    Ok(())
}

fn object_delete(context: &Context, handle: u64) {
    let (kind, deleted, is_frameworks) = context.with_object(handle, |object| {
        let data = &object.data;
        (data.name(), object.deleted, data.belongs_to_framework())
    });
    let problem = if deleted {
        "was already deleted"
    } else if is_frameworks {
        "only the framework may delete"
    } else {
        delete(context, handle);
        return;
    };
    context.stop_call(Rule::BadHandle, &format!("with 0x{handle:016X}, a {kind} that {problem}"))
}

fn reference(context: &Context, handle: u64, _tag: u64, _line: i32, _file: u64) {
    add_reference(context, handle);
}

fn dereference(context: &Context, handle: u64, _tag: u64, _line: i32, _file: u64) {
    let left = context.with_object(handle, |object| {
        object.references = object.references.checked_sub(1)?;
        Some(object.deleted && object.references + object.held == 0)
    });
    match left {
        Some(false) => {}
        Some(true) => destroy(context, handle),
        None => {
            context.stop_call(
                Rule::BadHandle,
                &format!("with 0x{handle:016X}, which the driver holds no reference to"),
            );
        }
    }
}

fn get_typed_context(context: &Context, handle: u64, type_info: u64) -> u64 {
    let info: ContextTypeInfo = context.read(type_info);
    let wanted = unique_type(type_info, &info);
    let address = context.framework().objects.get(&handle).map(|object| {
        object
            .contexts
            .iter()
            .find(|context| context.unique_type == wanted)
            .map_or(0, |context| context.memory.address())
    });
    address.unwrap_or_else(|| {
        context.stop_for_handle(&BadHandle { handle, expected: "WDFOBJECT", found: None })
    })
}

fn allocate_context(context: &Context, handle: u64, attributes: u64, slot: u64) -> NtResult {
    let attributes: ObjectAttributes = context.read(attributes);
    let address = add_context(context, handle, &attributes)?;
    context.write_optional(slot, &address);
    Ok(())
}

fn context_get_object(context: &Context, address: u64) -> u64 {
    let handle = context
        .framework()
        .objects
        .iter()
        .find(|(_, object)| {
            object.contexts.iter().any(|present| present.memory.address() == address)
        })
        .map(|(handle, _)| *handle);
    handle.unwrap_or_else(|| {
        context.stop_for_handle(&BadHandle {
            handle: address,
            expected: "context of an object",
            found: None,
        })
    })
}
