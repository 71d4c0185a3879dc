//! The `WdfObject*` routines.

use crate::{
    execution::{
        kinds::AnyObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{ContextTypeInfo, ObjectAttributes},
        rule::Rule,
    },
    services::kmdf::{
        binding::{driver_of, version_of_caller},
        lifetime::{
            add_context, add_reference, create_from, delete_for_driver, destroy_for_driver,
            read_attributes, unique_type, validate,
        },
        state::{
            framework::{BadHandle, Choices, Context, Data, Entries, General, Violation},
            request::RequestData,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("WdfObjectCreate", object_create),
    routine("WdfObjectDelete", object_delete),
    routine("WdfObjectGetTypedContextWorker", get_typed_context),
    routine("WdfObjectAllocateContext", allocate_context),
    routine("WdfObjectContextGetObject", context_get_object),
    routine("WdfObjectReferenceActual", reference),
    routine("WdfObjectDereferenceActual", dereference),
];

fn object_create(
    context: &Context,
    attributes: At<ObjectAttributes>,
    object: Out<AnyObject>,
) -> NtResult {
    let handle = create_from(context, General, attributes.0, driver_of(context))?;
    context.write(object.0, &handle);
    Ok(())
}

/// Deletes an object. The framework ignores a second call, and a call for an object that only the
/// framework deletes.
fn object_delete(context: &Context, handle: Handle<AnyObject>) {
    let (kind, is_frameworks, is_again) = context.with_object(handle.0, |object| {
        let is_frameworks = object.data.belongs_to_framework();
        let is_again = core::mem::replace(&mut object.delete_called, !is_frameworks);
        (object.data.name(), is_frameworks, is_again)
    });
    let problem = if is_frameworks {
        "only the framework may delete"
    } else if is_again {
        "was already deleted"
    } else {
        delete_for_driver(context, handle.0);
        return;
    };
    let what = format!("with 0x{handle:016X}, a {kind} that {problem}");
    if kind == RequestData::NAME {
        context.stop_call(Rule::BadHandle, &what)
    }
    context.warn_of_misuse(|| format!("{what}; the framework ignores the call"));
}

fn reference(
    context: &Context,
    handle: Handle<AnyObject>,
    _tag: Memory,
    _line: i32,
    _file: At<i8>,
) {
    add_reference(context, handle.0);
}

fn dereference(
    context: &Context,
    handle: Handle<AnyObject>,
    _tag: Memory,
    _line: i32,
    _file: At<i8>,
) {
    let left = context.with_object(handle.0, |object| {
        object.references = object.references.checked_sub(1)?;
        Some(object.is_over())
    });
    match left {
        Some(false) => {}
        Some(true) => destroy_for_driver(context, handle.0),
        None => {
            let what = format!("with 0x{handle:016X}, to which the driver holds no reference");
            context.violate(Violation::Object, [handle.0, 0], &what);
        }
    }
}

fn get_typed_context(
    context: &Context,
    handle: Handle<AnyObject>,
    type_info: At<ContextTypeInfo>,
) -> Memory {
    let info = type_info.read(context);
    let wanted = unique_type(type_info.0, &info);
    let address = context.framework().objects.get(&handle.0).map(|object| {
        object
            .contexts
            .iter()
            .find(|context| context.unique_type == wanted)
            .map_or(0, |context| context.memory.address())
    });
    At::new(address.unwrap_or_else(|| {
        context.stop_for_handle(&BadHandle { handle: handle.0, expected: "WDFOBJECT", found: None })
    }))
}

fn allocate_context(
    context: &Context,
    handle: Handle<AnyObject>,
    attributes: At<ObjectAttributes>,
    slot: At<u64>,
) -> NtResult<NtStatus> {
    context.with_object(handle.0, |_| ());
    let attributes =
        read_attributes(context, attributes.0).ok_or(NtStatus::WDF_PARENT_NOT_SPECIFIED)?;
    // Drivers for frameworks before 1.11 could specify a parent, which had no effect.
    let has_fixed_parent = version_of_caller(context) >= (1, 11);
    validate(context, &attributes, Choices { has_fixed_parent, ..Choices::default() })?;
    let (address, status) = add_context(context, handle.0, &attributes)?;
    context.write_optional(slot.0, &address);
    Ok(status)
}

fn context_get_object(context: &Context, address: Memory) -> Handle<AnyObject> {
    let handle = context
        .framework()
        .objects
        .iter()
        .find(|(_, object)| {
            object.contexts.iter().any(|present| present.memory.address() == address.0)
        })
        .map(|(handle, _)| *handle);
    Handle::new(handle.unwrap_or_else(|| {
        context.stop_for_handle(&BadHandle {
            handle: address.0,
            expected: "context of an object",
            found: None,
        })
    }))
}
