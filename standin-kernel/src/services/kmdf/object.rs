//! The creation and deletion of objects.

use super::state::framework::{AnyData, Context, Data, ObjectContext, ObjectRoutine};
use crate::{
    execution::routine::Handle,
    ground::{
        NtResult, NtStatus,
        abi::{ContextTypeInfo, ObjectAttributes},
        arena::Block,
    },
};

/// Returns the attributes at an address, `None` for a null pointer.
pub fn read_attributes(context: &Context, address: u64) -> Option<ObjectAttributes> {
    context.read_optional(address)
}

/// Creates an object and its context from a driver's attributes. `parent` is the parent if the
/// attributes name none.
pub fn create(
    context: &Context,
    data: impl Data,
    attributes: Option<&ObjectAttributes>,
    parent: Option<u64>,
) -> NtResult<u64> {
    let chosen = attributes.map_or(0, |attributes| attributes.parent);
    if let Some(attributes) = attributes
        && attributes.size as usize != size_of::<ObjectAttributes>()
    {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let parent = if chosen == 0 { parent } else { Some(chosen) };
    let handle = {
        let mut framework = context.framework();
        if parent.is_some_and(|parent| !framework.exists(parent)) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        framework.insert(Box::new(data), parent)
    };
    if let Some(attributes) = attributes {
        if let Some(object) = context.framework().objects.get_mut(&handle) {
            object.execution_level = attributes.execution_level;
            object.synchronization_scope = attributes.synchronization_scope;
        }
        add_context(context, handle, attributes)
            .inspect_err(|_| context.framework().forget(handle))?;
    }
    Ok(handle)
}

/// Creates an object as [`create`] does, from the attributes at an address, which can be null.
pub fn create_from(
    context: &Context,
    data: impl Data,
    attributes: u64,
    parent: Option<u64>,
) -> NtResult<u64> {
    let attributes = read_attributes(context, attributes);
    create(context, data, attributes.as_ref(), parent)
}

/// Adds the context and callbacks in attributes to an object. Returns the context's address, or
/// 0 if there is none.
pub fn add_context(context: &Context, handle: u64, attributes: &ObjectAttributes) -> NtResult<u64> {
    let added = if attributes.context_type == 0 {
        None
    } else {
        let info: ContextTypeInfo = context.read(attributes.context_type);
        if info.size as usize != size_of::<ContextTypeInfo>() {
            return Err(NtStatus::INFO_LENGTH_MISMATCH);
        }
        let size = match attributes.context_size_override {
            0 => info.context_size,
            size => size,
        };
        let size = usize::try_from(size).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
        Some(ObjectContext {
            unique_type: unique_type(attributes.context_type, &info),
            memory: Block::try_zeroed(size).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?,
        })
    };
    let mut framework = context.framework();
    let Some(object) = framework.objects.get_mut(&handle) else {
        return Err(NtStatus::INVALID_HANDLE);
    };
    let mut address = 0;
    if let Some(added) = added {
        if object.contexts.iter().any(|present| present.unique_type == added.unique_type) {
            return Err(NtStatus::OBJECT_NAME_COLLISION);
        }
        address = added.memory.address();
        object.contexts.push(added);
    }
    object.cleanup.extend((attributes.cleanup != 0).then_some(attributes.cleanup));
    object.destroy.extend((attributes.destroy != 0).then_some(attributes.destroy));
    drop(framework);
    Ok(address)
}

/// Returns a context type's identity: the type information that `UniqueType` points to, which
/// is the same for all copies, or the given type information if `UniqueType` is null.
pub const fn unique_type(address: u64, info: &ContextTypeInfo) -> u64 {
    if info.unique_type == 0 { address } else { info.unique_type }
}

/// Deletes an object and its descendants: calls the cleanup callbacks, children before parents,
/// then the destroy callbacks in the same order. An object that the driver holds references to
/// is destroyed with the last reference.
pub fn delete(context: &Context, root: u64) {
    let order = context.framework().subtree(root);
    for handle in &order {
        tell(context, *handle, |data| data.before_delete());
        let callbacks = context
            .framework()
            .objects
            .get_mut(handle)
            .map(|object| core::mem::take(&mut object.cleanup))
            .unwrap_or_default();
        for callback in callbacks {
            context.call_driver("EvtCleanupCallback", callback, [*handle]);
        }
    }
    for handle in &order {
        let is_held = context.framework().objects.get_mut(handle).is_some_and(|object| {
            object.deleted = true;
            object.references + object.held > 0
        });
        if !is_held {
            destroy(context, *handle);
        }
    }
}

/// Calls a routine of the object's kind, if the kind has it.
pub fn tell(
    context: &Context,
    handle: u64,
    occasion: impl FnOnce(&dyn AnyData) -> Option<ObjectRoutine>,
) {
    let routine =
        context.framework().objects.get(&handle).and_then(|object| occasion(&*object.data));
    if let Some(routine) = routine {
        routine(context, handle);
    }
}

/// Calls an object's destroy callbacks and removes the object.
pub fn destroy(context: &Context, handle: u64) {
    let callbacks = context
        .framework()
        .objects
        .get_mut(&handle)
        .map(|object| core::mem::take(&mut object.destroy))
        .unwrap_or_default();
    for callback in callbacks {
        context.call_driver("EvtDestroyCallback", callback, [handle]);
    }
    context.framework().forget(handle);
}

/// Keeps an object from being destroyed until [`release`] is called.
pub fn hold(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.held += 1);
}

/// Ends what [`hold`] began. Destroys an object that was deleted meanwhile. Has no effect on an
/// object that is gone.
pub fn release(context: &Context, handle: u64) {
    let is_over = context.framework().objects.get_mut(&handle).is_some_and(|object| {
        object.held = object.held.saturating_sub(1);
        object.deleted && object.references + object.held == 0
    });
    if is_over {
        destroy(context, handle);
    }
}

/// Writes a new object's handle for the driver. A null pointer is allowed where the handle is optional;
/// others are not null by the headers' annotations.
pub fn give(context: &Context, created: NtResult<u64>, to: u64) -> NtResult {
    let handle = created?;
    context.write_optional(to, &handle);
    Ok(())
}

/// Adds a reference that the driver holds.
pub fn add_reference(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.references += 1);
}

/// Returns the parent of an object of a known kind.
pub fn get_parent<T: Data>(context: &Context, handle: Handle<T>) -> u64 {
    handle.check(context);
    context.framework().parent(handle.0).unwrap_or(0)
}
