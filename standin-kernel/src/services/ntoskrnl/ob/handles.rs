//! Handles, and drivers' references to objects.

use std::collections::HashMap;

use super::{
    callbacks::{self, HandleOperation},
    filters::{CREATE, DUPLICATE},
};
use crate::{
    execution::{
        coroutine::wait_until,
        kinds::NtObject,
        routine::{At, Handle, Memory, Out, routine},
    },
    ground::{NtResult, NtStatus, memory, opaque::ObjectType},
    services::ntoskrnl::{
        context::{Context, Entries},
        data,
        ke::{thread_objects, threads},
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwClose", close),
    routine("ZwDuplicateObject", duplicate),
    routine("ObCloseHandle", close_for),
    routine("ObReferenceObjectByHandle", reference_by_handle),
    routine("ObReferenceObjectByHandleWithTag", reference_by_handle_with_tag),
    routine("ObReferenceObjectByPointer", reference_by_pointer),
    routine("ObReferenceObjectByPointerWithTag", reference_by_pointer_with_tag),
    routine("ObReferenceObjectSafe", reference_safe),
    routine("ObReferenceObjectSafeWithTag", reference_safe_with_tag),
    routine("ObDereferenceObjectDeferDelete", dereference_deferred),
    routine("ObDereferenceObjectDeferDeleteWithTag", dereference_deferred_with_tag),
    routine("ObfReferenceObject", reference),
    routine("ObfReferenceObjectWithTag", reference_with_tag),
    routine("ObfDereferenceObject", dereference),
    routine("ObfDereferenceObjectWithTag", dereference_with_tag),
];

/// `NtCurrentProcess()`.
pub const CURRENT_PROCESS: u64 = (-1_i64).cast_unsigned();
/// `NtCurrentThread()`.
pub const CURRENT_THREAD: u64 = (-2_i64).cast_unsigned();

/// The first handle. Kernel handles have the high bit set.
const FIRST: u64 = 0xFFFF_FFFF_8000_1000;
const STEP: u64 = 4;

/// The object to which a handle refers.
#[derive(Clone, Copy)]
pub struct Target {
    /// The exported variable that points to the object's type.
    pub type_name: &'static str,
    /// The object.
    pub object: u64,
    /// Called when the handle is closed, with the object.
    pub close: fn(&Context, u64),
    /// Set if the handle holds a reference to the object. `close` releases the reference.
    pub has_reference: bool,
}

impl Target {
    /// Returns the target for a thread handle.
    pub const fn thread(object: u64) -> Self {
        Self { type_name: "PsThreadType", object, close: |_, _| {}, has_reference: false }
    }

    /// Returns the target for a process handle.
    pub const fn process(object: u64) -> Self {
        Self { type_name: "PsProcessType", object, close: |_, _| {}, has_reference: false }
    }
}

/// An object that exists only while it has handles or references.
struct Owned {
    /// The number of open handles.
    handles: u32,
    /// Called with the object when it no longer has handles or references.
    delete: fn(&Context, u64),
}

#[derive(Default)]
struct Handles {
    issued: u64,
    open: HashMap<u64, Target>,
    /// The objects for which [`own`] was called.
    owned: HashMap<u64, Owned>,
    /// The drivers' references to objects, excluding handles.
    references: HashMap<u64, u32>,
    /// The types of objects that have had a handle, as long as they have handles or references.
    types: HashMap<u64, &'static str>,
    /// The number of objects whose deletion is queued.
    deferred: u32,
}

/// Creates a handle.
pub fn open(context: &Context, target: Target) -> u64 {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    let handle = FIRST + handles.issued * STEP;
    handles.issued += 1;
    if let Some(owned) = handles.owned.get_mut(&target.object) {
        owned.handles += 1;
    }
    handles.types.insert(target.object, target.type_name);
    handles.open.insert(handle, target);
    handle
}

/// Opens a handle of a process or a thread between the pre- and post-operation callbacks.
pub fn open_watched(
    context: &Context,
    target: Target,
    handle: Out<NtObject>,
    access: u32,
) -> NtResult {
    let operation = HandleOperation {
        operation: CREATE,
        type_name: target.type_name,
        object: target.object,
        access,
        processes: [0; 2],
    };
    callbacks::notify(context, &operation, || {
        handle.write(context, open(context, target));
        Ok(())
    })
}

impl Handles {
    /// Removes the type of an unused object, because a new object can have its address.
    fn forget_unused_type(&mut self, object: u64) {
        let is_open = self.open.values().any(|target| target.object == object);
        if !is_open && !self.references.contains_key(&object) {
            self.types.remove(&object);
        }
    }
}

/// Calls `delete` with an object when its last handle is closed and its last reference is released.
/// Handles that were opened before this call do not count.
pub fn own(context: &Context, object: u64, delete: fn(&Context, u64)) {
    let owned = Owned { handles: 0, delete };
    context.state().get::<Handles>().owned.insert(object, owned);
}

/// Returns whether an object has neither handles nor references.
pub fn is_unused(context: &Context, object: u64) -> bool {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    let owned = handles.owned.get(&object);
    !handles.references.contains_key(&object) && owned.is_none_or(|owned| owned.handles == 0)
}

/// Removes an object for which [`own`] was called.
pub fn disown(context: &Context, object: u64) {
    context.state().get::<Handles>().owned.remove(&object);
}

/// Removes an object for which [`own`] was called, and the drivers' references to it.
pub fn forget(context: &Context, object: u64) {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    handles.owned.remove(&object);
    handles.references.remove(&object);
}

/// Returns whether an object for which [`own`] was called has handles or references, so that it must not
/// be deleted yet.
pub fn is_in_use(context: &Context, object: u64) -> bool {
    context.state().get::<Handles>().owned.contains_key(&object)
}

/// Returns the number of open handles of an object for which [`own`] was called.
pub fn count(context: &Context, object: u64) -> u32 {
    context.state().get::<Handles>().owned.get(&object).map_or(0, |owned| owned.handles)
}

/// Deletes an object that has neither handles nor references: immediately, or on a kernel thread if APCs
/// are disabled for the current thread.
fn delete_unused(context: &Context, object: u64) {
    let unused = context.with_state(|handles: &mut Handles| {
        let is_unused = !handles.references.contains_key(&object)
            && handles.owned.get(&object).is_some_and(|owned| owned.handles == 0);
        is_unused.then(|| handles.owned.remove(&object)).flatten()
    });
    let Some(Owned { delete, .. }) = unused else {
        return;
    };
    if !thread_objects::gets_no_calls(context) {
        delete(context, object);
        return;
    }
    context.state().get::<Handles>().deferred += 1;
    threads::queue_body(context, 0, move |context| {
        delete(context, object);
        context.state().get::<Handles>().deferred -= 1;
    });
}

/// Waits for the queued deletions.
pub fn finish_deletions(context: &Context) {
    wait_until(context, None, || context.state().get::<Handles>().deferred == 0);
}

/// Returns the target of a handle.
pub fn target(context: &Context, handle: u64) -> Option<Target> {
    context.state().get::<Handles>().open.get(&handle).copied()
}

/// Returns the type (the name of the exported variable) of an object that has a handle, or that has
/// references and had a handle.
pub fn type_of(context: &Context, object: u64) -> Option<&'static str> {
    context.state().get::<Handles>().types.get(&object).copied()
}

/// Closes a handle. Bugchecks if the handle is not open, as Driver Verifier does.
pub fn close(context: &Context, handle: Handle<NtObject>) -> NtStatus {
    if handle.0 == CURRENT_PROCESS || handle.0 == CURRENT_THREAD {
        return NtStatus::SUCCESS;
    }
    let closed = context.with_state(|handles: &mut Handles| {
        let closed = handles.open.remove(&handle.0)?;
        if let Some(owned) = handles.owned.get_mut(&closed.object) {
            owned.handles = owned.handles.saturating_sub(1);
        }
        handles.forget_unused_type(closed.object);
        Some(closed)
    });
    let Some(closed) = closed else {
        context.stop_for_wrong(handle.0, "an open handle");
    };
    (closed.close)(context, closed.object);
    delete_unused(context, closed.object);
    NtStatus::SUCCESS
}

/// Opens another handle to the object of a handle, unless the flags request only that the source be
/// closed. In the stand-in kernel, drivers share one handle table, regardless of the process.
fn duplicate(
    context: &Context,
    source_process: Handle<NtObject>,
    source: Handle<NtObject>,
    target_process: Handle<NtObject>,
    to: Out<NtObject>,
    access: u32,
    _attributes: u32,
    options: u32,
) -> NtResult {
    /// `DUPLICATE_CLOSE_SOURCE`.
    const CLOSE_SOURCE: u32 = 1;
    let wants_handle = !to.is_null();
    must_be_process(context, source_process.0)?;
    let found = target_of(context, source.0)?;
    if wants_handle {
        must_be_process(context, target_process.0)?;
        let [from, into] = [source_process, target_process].map(|one| target_of(context, one.0));
        let operation = HandleOperation {
            operation: DUPLICATE,
            type_name: found.type_name,
            object: found.object,
            access,
            processes: [from?.object, into?.object],
        };
        callbacks::notify(context, &operation, || {
            if found.has_reference {
                reference(context, At::new(found.object));
            }
            to.write(context, open(context, found));
            Ok(())
        })?;
    }
    if options & CLOSE_SOURCE != 0 {
        close(context, source);
    }
    Ok(())
}

/// Fails if a handle is not a process handle.
pub fn must_be_process(context: &Context, handle: u64) -> NtResult {
    let is_process = target_of(context, handle)?.type_name == "PsProcessType";
    if is_process { Ok(()) } else { Err(NtStatus::OBJECT_TYPE_MISMATCH) }
}

fn close_for(context: &Context, handle: Handle<NtObject>, _mode: i8) -> NtStatus {
    close(context, handle)
}

/// Returns the number of an object's handles, and the number of its references including handles.
pub fn counts(context: &Context, object: u64) -> (u32, u32) {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    let open = handles.open.values().filter(|target| target.object == object);
    let (of_handles, with_reference) = open.fold((0_u32, 0_u32), |(all, counted), target| {
        (all.saturating_add(1), counted.saturating_add(target.has_reference.into()))
    });
    let references = handles.references.get(&object).copied().unwrap_or(0);
    (of_handles, references.saturating_add(of_handles).saturating_sub(with_reference))
}

/// Returns the target of a handle, which may be the pseudo-handle of the current thread or process.
pub fn target_of(context: &Context, handle: u64) -> NtResult<Target> {
    match handle {
        CURRENT_THREAD => Ok(Target::thread(thread_objects::current(context).0)),
        CURRENT_PROCESS => Ok(Target::process(thread_objects::current_process(context).0)),
        _ => target(context, handle).ok_or(NtStatus::INVALID_HANDLE),
    }
}

fn reference_by_handle(
    context: &Context,
    handle: Handle<NtObject>,
    _access: u32,
    kind: At<ObjectType>,
    _mode: i8,
    object: At<u64>,
    information: At<u64>,
) -> NtResult {
    object.write(context, 0);
    let found = target_of(context, handle.0)?;
    if !kind.is_null() && data::object_type(found.type_name) != Some(kind.0) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    reference(context, At::new(found.object));
    object.write(context, found.object);
    information.write_optional(context, 0);
    Ok(())
}

fn reference_by_handle_with_tag(
    context: &Context,
    handle: Handle<NtObject>,
    access: u32,
    kind: At<ObjectType>,
    mode: i8,
    _tag: u32,
    object: At<u64>,
    information: At<u64>,
) -> NtResult {
    reference_by_handle(context, handle, access, kind, mode, object, information)
}

fn reference_by_pointer(
    context: &Context,
    object: Memory,
    _access: u32,
    _kind: At<ObjectType>,
    _mode: i8,
) -> NtStatus {
    reference(context, object);
    NtStatus::SUCCESS
}

fn reference_by_pointer_with_tag(
    context: &Context,
    object: Memory,
    access: u32,
    kind: At<ObjectType>,
    mode: i8,
    _tag: u32,
) -> NtStatus {
    reference_by_pointer(context, object, access, kind, mode)
}

/// Adds a reference to an object that is not being deleted. This kernel deletes an object with its last
/// reference, so the object of a valid address always gets the reference.
fn reference_safe(context: &Context, object: Memory) -> bool {
    reference(context, object);
    true
}

fn reference_safe_with_tag(context: &Context, object: Memory, _tag: u32) -> bool {
    reference_safe(context, object)
}

/// Adds a reference to an object. Returns the number of references. Drivers can rely only on the
/// number being nonzero.
pub fn reference(context: &Context, object: Memory) -> i64 {
    let is_thread = thread_objects::has_ended(context, object.0).is_some();
    if !is_thread && memory::read::<u8>(object.0).is_err() {
        context.stop_for_wrong(object.0, "an object");
    }
    let mut state = context.state();
    let count = state.get::<Handles>().references.entry(object.0).or_default();
    *count += 1;
    i64::from(*count) + 1
}

/// Adds a reference to an object that can have no handle yet.
pub fn reference_new(context: &Context, object: u64, type_name: &'static str) {
    context.state().get::<Handles>().types.insert(object, type_name);
    reference(context, At::new(object));
}

fn reference_with_tag(context: &Context, object: Memory, _tag: u32) -> i64 {
    reference(context, object)
}

/// Releases a reference to an object. Returns the number of remaining references.
pub fn dereference(context: &Context, object: Memory) -> i64 {
    let left = context.with_state(|handles: &mut Handles| {
        let count = handles.references.get_mut(&object.0)?;
        *count = count.checked_sub(1)?;
        let left = *count;
        if left == 0 {
            handles.references.remove(&object.0);
            handles.forget_unused_type(object.0);
        }
        Some(left)
    });
    let Some(left) = left else {
        context.stop_for_misuse(&format!(
            "for the object at 0x{object:016X}, to which the driver holds no reference"
        ));
    };
    if left == 0 {
        delete_unused(context, object.0);
    }
    i64::from(left) + 1
}

fn dereference_with_tag(context: &Context, object: Memory, _tag: u32) -> i64 {
    dereference(context, object)
}

/// Releases a reference to an object. Windows deletes the object on another thread, so that the caller
/// may hold locks that the deletion acquires; drivers' own objects have no such deletion here.
fn dereference_deferred(context: &Context, object: Memory) {
    dereference(context, object);
}

fn dereference_deferred_with_tag(context: &Context, object: Memory, _tag: u32) {
    dereference_deferred(context, object);
}
