//! Creates and deletes objects.

use crate::{
    execution::{kinds::AnyObject, routine::Handle},
    ground::{
        NtResult, NtStatus,
        abi::{ContextTypeInfo, ObjectAttributes},
        arena::Block,
        irql::Irql,
    },
    services::kmdf::{
        state::framework::{AnyData, Choices, Context, Data, ObjectContext, ObjectRoutine},
        work::{Work, WorkKind, queue_work},
    },
};

/// Returns the attributes at an address, or `None` for a null pointer.
pub fn read_attributes(context: &Context, address: u64) -> Option<ObjectAttributes> {
    context.read_optional(address)
}

/// Checks attributes as the framework does for each object.
pub fn validate(context: &Context, attributes: &ObjectAttributes, choices: Choices) -> NtResult {
    const INHERIT: u32 = 1;
    const DISPATCH: u32 = 3;
    const NONE: u32 = 4;
    if attributes.size as usize != size_of::<ObjectAttributes>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    let info = type_info(context, attributes)?;
    let lacks_name = info.is_some_and(|info| info.context_size > 0 && info.context_name == 0);
    let is_short = match (attributes.context_size_override, info) {
        (0, _) => false,
        (size, info) => info.is_none_or(|info| size < info.context_size),
    };
    if lacks_name || is_short {
        return Err(NtStatus::WDF_OBJECT_ATTRIBUTES_INVALID);
    }
    if choices.has_fixed_parent && attributes.parent_object != 0 {
        return Err(NtStatus::WDF_PARENT_ASSIGNMENT_NOT_ALLOWED);
    }
    let (level, scope) = (attributes.execution_level, attributes.synchronization_scope);
    if !(INHERIT..=DISPATCH).contains(&level) || !(INHERIT..=NONE).contains(&scope) {
        return Err(NtStatus::WDF_OBJECT_ATTRIBUTES_INVALID);
    }
    if !choices.scope && scope != INHERIT && scope != NONE {
        return Err(NtStatus::WDF_SYNCHRONIZATION_SCOPE_INVALID);
    }
    if !choices.level && level != INHERIT {
        return Err(NtStatus::WDF_EXECUTION_LEVEL_INVALID);
    }
    Ok(())
}

/// Returns the type information of the context that attributes describe, or `None` if they describe
/// no context.
fn type_info(
    context: &Context,
    attributes: &ObjectAttributes,
) -> NtResult<Option<ContextTypeInfo>> {
    /// The size up to KMDF 1.0, without the unique type.
    const OLD: usize = 24;
    if attributes.context_type_info == 0 {
        return Ok(None);
    }
    let info = context.read_sized(attributes.context_type_info, &[OLD]);
    info.map(Some).map_err(|_| NtStatus::INFO_LENGTH_MISMATCH)
}

/// Returns the attributes of an object that must have a parent.
pub fn with_parent(context: &Context, attributes: u64) -> NtResult<ObjectAttributes> {
    let attributes =
        read_attributes(context, attributes).ok_or(NtStatus::WDF_PARENT_NOT_SPECIFIED)?;
    if attributes.size as usize != size_of::<ObjectAttributes>() {
        return Err(NtStatus::INFO_LENGTH_MISMATCH);
    }
    if attributes.parent_object == 0 {
        return Err(NtStatus::WDF_PARENT_NOT_SPECIFIED);
    }
    context.with_object(attributes.parent_object, |_| ());
    Ok(attributes)
}

/// Creates an object and its context from a driver's attributes. The attributes' parent takes
/// precedence over `parent`.
pub fn create<T: Data>(
    context: &Context,
    data: T,
    attributes: Option<&ObjectAttributes>,
    parent: Option<u64>,
) -> NtResult<u64> {
    if let Some(attributes) = attributes {
        validate(context, attributes, T::CHOICES)?;
    }
    let added = attributes.map(|attributes| new_context(context, attributes)).transpose()?;
    let chosen =
        attributes.map(|attributes| attributes.parent_object).filter(|parent| *parent != 0);
    let parent = chosen.or(parent);
    if let Some(parent) = parent
        && context.with_object(parent, |parent| parent.disposing)
    {
        return Err(NtStatus::DELETE_PENDING);
    }
    let mut framework = context.framework();
    let handle = framework.insert(Box::new(data), parent);
    if let (Some(attributes), Some(object)) = (attributes, framework.objects.get_mut(&handle)) {
        object.execution_level = attributes.execution_level;
        object.synchronization_scope = attributes.synchronization_scope;
        object.contexts.extend(added.flatten());
        object.cleanup.extend(
            (attributes.evt_cleanup_callback != 0).then_some(attributes.evt_cleanup_callback),
        );
        object.destroy.extend(
            (attributes.evt_destroy_callback != 0).then_some(attributes.evt_destroy_callback),
        );
    }
    Ok(handle)
}

/// Creates an object from the attributes at `address`, which can be null. See [`create`].
pub fn create_from(
    context: &Context,
    data: impl Data,
    attributes: u64,
    parent: Option<u64>,
) -> NtResult<u64> {
    let attributes = read_attributes(context, attributes);
    create(context, data, attributes.as_ref(), parent)
}

/// Creates the context that attributes describe, if they describe one.
fn new_context(
    context: &Context,
    attributes: &ObjectAttributes,
) -> NtResult<Option<ObjectContext>> {
    let Some(info) = type_info(context, attributes)? else {
        return Ok(None);
    };
    let size = attributes.context_size_override.max(info.context_size);
    let size = usize::try_from(size).map_err(|_| NtStatus::INTEGER_OVERFLOW)?;
    Ok(Some(ObjectContext {
        unique_type: unique_type(attributes.context_type_info, &info),
        memory: Block::try_zeroed(size).ok_or(NtStatus::INSUFFICIENT_RESOURCES)?,
    }))
}

/// Adds the context and callbacks in attributes to an object. Returns the context's address, and a
/// status that distinguishes a new context from an existing one.
pub fn add_context(
    context: &Context,
    handle: u64,
    attributes: &ObjectAttributes,
) -> NtResult<(u64, NtStatus)> {
    let added = new_context(context, attributes)?.ok_or(NtStatus::OBJECT_NAME_INVALID)?;
    context.with_object(handle, |object| {
        if object.disposing {
            return Err(NtStatus::DELETE_PENDING);
        }
        let mut present = object.contexts.iter();
        if let Some(present) = present.find(|present| present.unique_type == added.unique_type) {
            return Ok((present.memory.address(), NtStatus::OBJECT_NAME_EXISTS));
        }
        let address = added.memory.address();
        object.contexts.push(added);
        object.cleanup.extend(
            (attributes.evt_cleanup_callback != 0).then_some(attributes.evt_cleanup_callback),
        );
        object.destroy.extend(
            (attributes.evt_destroy_callback != 0).then_some(attributes.evt_destroy_callback),
        );
        Ok((address, NtStatus::SUCCESS))
    })
}

/// Returns a context type's identity: the address of the type information to which `UniqueType`
/// points, which is the same for all copies. If `UniqueType` is null, returns `address`.
pub const fn unique_type(address: u64, info: &ContextTypeInfo) -> u64 {
    if info.unique_type == 0 { address } else { info.unique_type }
}

/// Deletes an object and its descendants: calls the cleanup callbacks, children before parents, and
/// then the destroy callbacks in the same order. An object to which the driver still holds
/// references is destroyed when the last reference is released. Has no effect on an object whose
/// deletion has begun.
pub fn delete(context: &Context, root: u64) {
    if dispose(context, root) {
        end(context, root);
    }
}

/// Deletes an object because its creation fails. Its callbacks are not called.
pub fn discard(context: &Context, handle: u64) {
    context.with_object(handle, |object| {
        object.cleanup.clear();
        object.destroy.clear();
    });
    delete(context, handle);
}

/// Cleans up an object after its descendants. A callback can still add children to the objects that
/// are not cleaned up yet. Returns whether this call begins the object's deletion.
fn dispose(context: &Context, handle: u64) -> bool {
    let begins = context
        .framework()
        .objects
        .get_mut(&handle)
        .is_some_and(|object| !core::mem::replace(&mut object.disposing, true));
    if !begins {
        return false;
    }
    let next = || {
        let framework = context.framework();
        framework.children_of(handle).into_iter().find(|child| !framework.is_disposing(*child))
    };
    while let Some(child) = next() {
        dispose(context, child);
    }
    tell(context, handle, |data| data.before_delete());
    let callbacks = context
        .framework()
        .objects
        .get_mut(&handle)
        .map(|object| core::mem::take(&mut object.cleanup))
        .unwrap_or_default();
    for callback in callbacks {
        context.call_driver("EvtCleanupCallback", callback, [handle]);
    }
    true
}

/// Cleans up an object and its descendants, and destroys the descendants. Returns whether this call
/// begins the object's deletion; [`end`] completes it.
pub fn empty(context: &Context, handle: u64) -> bool {
    let begins = dispose(context, handle);
    if begins {
        end_children(context, handle);
    }
    begins
}

fn end_children(context: &Context, handle: u64) {
    let children = context.framework().children_of(handle);
    for child in children {
        end(context, child);
    }
}

/// Destroys the descendants of an object, and then the object unless it is still referenced.
pub fn end(context: &Context, handle: u64) {
    end_children(context, handle);
    let is_over = context.framework().objects.get_mut(&handle).is_some_and(|object| {
        object.deleted = true;
        object.is_over()
    });
    if is_over {
        destroy(context, handle);
    }
}

/// Deletes an object at the driver's request. If the object must be cleaned up at `PASSIVE_LEVEL`
/// and the IRQL is higher, it is deleted later.
pub fn delete_for_driver(context: &Context, root: u64) {
    let includes_it = {
        let framework = context.framework();
        let parent = framework.parent(root);
        framework.is_disposing(root) || parent.is_some_and(|up| framework.is_disposing(up))
    };
    if includes_it {
        // The deletion of the parent includes this object.
    } else if must_wait(context, root) {
        delete_later(context, root);
    } else {
        delete(context, root);
    }
}

/// Returns whether the object or a descendant must be cleaned up at `PASSIVE_LEVEL` and the IRQL is
/// higher.
pub fn must_wait(context: &Context, root: u64) -> bool {
    context.irql() > Irql::PASSIVE_LEVEL && context.framework().is_deleted_passively(root)
}

/// Deletes an object at `PASSIVE_LEVEL`, after the current step.
pub fn delete_later(context: &Context, root: u64) {
    context.framework().separate(root);
    context.with_object(root, |object| object.disposing = true);
    let run = |context: &Context, handle| {
        context.with_object(handle, |object| object.disposing = false);
        delete(context, handle);
    };
    queue_work(context, Work { kind: WorkKind::Deletion, routine: 0, handle: root, run });
}

/// Destroys an object after the driver has released the last reference.
pub fn destroy_for_driver(context: &Context, handle: u64) {
    if must_wait(context, handle) {
        let kind = WorkKind::Destruction;
        queue_work(context, Work { kind, routine: 0, handle, run: destroy });
    } else {
        destroy(context, handle);
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
    tell(context, handle, |data| data.after_destroy());
    context.framework().forget(handle);
}

/// Prevents an object from being destroyed until [`release`] is called.
pub fn hold(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.held += 1);
}

/// Undoes one [`hold`]. Destroys the object if it was deleted after that. Does nothing if the
/// object no longer exists.
pub fn release(context: &Context, handle: u64) {
    let is_over = context.framework().objects.get_mut(&handle).is_some_and(|object| {
        object.held = object.held.saturating_sub(1);
        object.is_over()
    });
    if is_over {
        destroy(context, handle);
    }
}

/// Stores a new object's handle for the driver. A null pointer is allowed if the handle is
/// optional; for other handles, the headers' annotations forbid it.
pub fn give(context: &Context, created: NtResult<u64>, out_handle: u64) -> NtResult {
    let handle = created?;
    context.write_optional(out_handle, &handle);
    Ok(())
}

/// Adds a driver reference.
pub fn add_reference(context: &Context, handle: u64) {
    context.with_object(handle, |object| object.references += 1);
}

/// Returns the parent of an object of a known kind.
pub fn get_parent<T: Data>(context: &Context, handle: Handle<T>) -> Handle<AnyObject> {
    handle.check(context);
    Handle::new(context.framework().parent(handle.0).unwrap_or(0))
}
