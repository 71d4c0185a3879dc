//! Creates and deletes objects.

use super::state::framework::{AnyData, Context, Data, ObjectContext, ObjectRoutine};
use crate::{
    execution::routine::Handle,
    ground::{
        NtResult, NtStatus,
        abi::{ContextTypeInfo, ObjectAttributes},
        arena::Block,
    },
};

/// Returns the attributes at an address, or `None` for a null pointer.
pub fn read_attributes(context: &Context, address: u64) -> Option<ObjectAttributes> {
    context.read_optional(address)
}

/// Creates an object and its context from a driver's attributes. `parent` is used if the attributes
/// name no parent.
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

/// Returns a context type's identity: the type information to which `UniqueType` points, which is the
/// same for all copies. If `UniqueType` is null, returns the given type information.
pub const fn unique_type(address: u64, info: &ContextTypeInfo) -> u64 {
    if info.unique_type == 0 { address } else { info.unique_type }
}

/// Deletes an object and its descendants: calls the cleanup callbacks, children before parents, then
/// the destroy callbacks in the same order. If the driver still holds references to an object, it is
/// destroyed when the last reference is released.
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

/// Calls a routine that the object's kind defines, if any.
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

/// Prevents an object from being destroyed until [`release`] is called.
pub fn hold(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.held += 1);
}

/// Undoes one [`hold`]. Destroys the object if it was deleted meanwhile. Does nothing if the object is
/// gone.
pub fn release(context: &Context, handle: u64) {
    let is_over = context.framework().objects.get_mut(&handle).is_some_and(|object| {
        object.held = object.held.saturating_sub(1);
        object.deleted && object.references + object.held == 0
    });
    if is_over {
        destroy(context, handle);
    }
}

/// Stores a new object's handle for the driver. A null pointer is allowed for optional handles; the
/// headers' annotations forbid it for others.
pub fn give(context: &Context, created: NtResult<u64>, to: u64) -> NtResult {
    let handle = created?;
    context.write_optional(to, &handle);
    Ok(())
}

/// Adds a driver reference.
pub fn add_reference(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.references += 1);
}

/// Returns the parent of an object of a known kind.
pub fn get_parent<T: Data>(context: &Context, handle: Handle<T>) -> u64 {
    handle.check(context);
    context.framework().parent(handle.0).unwrap_or(0)
}
