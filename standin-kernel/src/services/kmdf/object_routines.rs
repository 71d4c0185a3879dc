//! The `WdfObject*` routines.

use super::{
    driver::driver_of,
    object::{add_context, add_reference, create, delete, destroy, read_attributes, unique_type},
    state::framework::{BadHandle, Context, Entries, General},
};
use crate::{
    execution::routine::Routine,
    ground::{
        abi::{ContextTypeInfo, ObjectAttributes},
        rule::Rule,
        status::NtStatus,
    },
};

pub const ENTRIES: Entries = &[
    ("WdfObjectCreate", Routine::Three(object_create)),
    ("WdfObjectDelete", Routine::Two(object_delete)),
    ("WdfObjectGetTypedContextWorker", Routine::Three(get_typed_context)),
    ("WdfObjectAllocateContext", Routine::Four(allocate_context)),
    ("WdfObjectContextGetObject", Routine::Two(context_get_object)),
    ("WdfObjectReferenceActual", Routine::Five(reference)),
    ("WdfObjectDereferenceActual", Routine::Five(dereference)),
];

fn object_create(context: &Context, _globals: u64, attributes: u64, object: u64) -> u64 {
    let attributes = read_attributes(context, attributes);
    let parent = driver_of(context);
    match create(context, General, attributes.as_ref(), parent) {
        Ok(handle) => {
            context.write(object, &handle);
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn object_delete(context: &Context, _globals: u64, handle: u64) -> u64 {
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
        return 0;
    };
    context.stop(
        Rule::BadHandle,
        format!(
            "WdfObjectDelete was called from {} with 0x{handle:016X}, a {kind} that {problem}",
            context.caller()
        ),
    )
}

fn reference(
    context: &Context,
    _globals: u64,
    handle: u64,
    _tag: u64,
    _line: u64,
    _file: u64,
) -> u64 {
    add_reference(context, handle);
    0
}

fn dereference(
    context: &Context,
    _globals: u64,
    handle: u64,
    _tag: u64,
    _line: u64,
    _file: u64,
) -> u64 {
    let left = context.with_object(handle, |object| {
        object.references = object.references.checked_sub(1)?;
        Some(object.deleted && object.references + object.held == 0)
    });
    match left {
        Some(false) => {}
        Some(true) => destroy(context, handle),
        None => {
            context.stop(
                Rule::BadHandle,
                format!(
                    "WdfObjectDereferenceActual was called from {} with 0x{handle:016X}, which \
                     the driver holds no reference to",
                    context.caller()
                ),
            );
        }
    }
    0
}

fn get_typed_context(context: &Context, _globals: u64, handle: u64, type_info: u64) -> u64 {
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

fn allocate_context(
    context: &Context,
    _globals: u64,
    handle: u64,
    attributes: u64,
    slot: u64,
) -> u64 {
    let attributes: ObjectAttributes = context.read(attributes);
    match add_context(context, handle, &attributes) {
        Ok(address) => {
            if slot != 0 {
                context.write(slot, &address);
            }
            NtStatus::SUCCESS.to_register()
        }
        Err(status) => status.to_register(),
    }
}

fn context_get_object(context: &Context, _globals: u64, address: u64) -> u64 {
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
