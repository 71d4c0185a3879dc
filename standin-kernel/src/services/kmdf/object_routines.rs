//! The `WdfObject*` routines.

use super::{
    driver::{driver_of, version_of_caller},
    object::{
        add_context, add_reference, create_from, delete_for_driver, destroy_for_driver,
        read_attributes, unique_type, validate,
    },
    state::{
        framework::{BadHandle, Choices, Context, Data, Entries, General, Violation},
        request::RequestData,
    },
};
use crate::{
    execution::routine::Routine,
    ground::{NtResult, NtStatus, abi::ContextTypeInfo, rule::Rule},
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

/// Deletes an object. The framework ignores a second call, and a call for an object that only the
/// framework deletes.
fn object_delete(context: &Context, handle: u64) {
    let (kind, is_frameworks, is_again) = context.with_object(handle, |object| {
        let is_frameworks = object.data.belongs_to_framework();
        let is_again = core::mem::replace(&mut object.delete_called, !is_frameworks);
        (object.data.name(), is_frameworks, is_again)
    });
    let problem = if is_frameworks {
        "only the framework may delete"
    } else if is_again {
        "was already deleted"
    } else {
        delete_for_driver(context, handle);
        return;
    };
    let what = format!("with 0x{handle:016X}, a {kind} that {problem}");
    if kind == RequestData::NAME {
        context.stop_call(Rule::BadHandle, &what)
    }
    context.warn_of_misuse(|| format!("{what}; the framework ignores the call"));
}

fn reference(context: &Context, handle: u64, _tag: u64, _line: i32, _file: u64) {
    add_reference(context, handle);
}

fn dereference(context: &Context, handle: u64, _tag: u64, _line: i32, _file: u64) {
    let left = context.with_object(handle, |object| {
        object.references = object.references.checked_sub(1)?;
        Some(object.is_over())
    });
    match left {
        Some(false) => {}
        Some(true) => destroy_for_driver(context, handle),
        None => {
            let what = format!("with 0x{handle:016X}, to which the driver holds no reference");
            context.violate(Violation::Object, [handle, 0], &what);
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

fn allocate_context(
    context: &Context,
    handle: u64,
    attributes: u64,
    slot: u64,
) -> NtResult<NtStatus> {
    context.with_object(handle, |_| ());
    let attributes =
        read_attributes(context, attributes).ok_or(NtStatus::WDF_PARENT_NOT_SPECIFIED)?;
    // Drivers for frameworks before 1.11 could specify a parent, which had no effect.
    let has_fixed_parent = version_of_caller(context) >= (1, 11);
    validate(context, &attributes, Choices { has_fixed_parent, ..Choices::default() })?;
    let (address, status) = add_context(context, handle, &attributes)?;
    context.write_optional(slot, &address);
    Ok(status)
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
