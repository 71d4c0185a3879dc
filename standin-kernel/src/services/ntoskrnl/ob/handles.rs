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
    ground::{NtResult, NtStatus, memory, opaque::ObjectType, rule::Rule},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{thread_objects, threads},
        variables,
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

/// The first kernel handle. Kernel handles have the high bit set.
const FIRST: u64 = 0xFFFF_FFFF_8000_1000;
/// The first handle of a process.
const FIRST_OF_PROCESS: u64 = 0x1000;
const STEP: u64 = 4;

/// `OBJ_KERNEL_HANDLE`.
const KERNEL_HANDLE: u32 = 0x200;
/// `MAXIMUM_ALLOWED`, `GENERIC_ALL`, `GENERIC_EXECUTE`, `GENERIC_WRITE` and `GENERIC_READ`.
const GENERIC: u32 = 0xF200_0000;
/// `UserMode`.
const USER_MODE: i8 = 1;

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

/// The properties of a new handle.
#[derive(Clone, Copy)]
pub struct Opening {
    /// The `OBJ_*` flags.
    pub attributes: u32,
    /// The requested access.
    pub access: u32,
}

impl Opening {
    /// A kernel handle with all rights.
    pub const KERNEL: Self = Self { attributes: KERNEL_HANDLE, access: GENERIC };
}

/// An open handle.
#[derive(Clone, Copy)]
struct Open {
    target: Target,
    /// The process to which the handle belongs, or `None` for a kernel handle, which is valid in all
    /// processes.
    process: Option<u32>,
    /// The requested access.
    access: u32,
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
    open: HashMap<u64, Open>,
    /// The objects for which [`own`] was called.
    owned: HashMap<u64, Owned>,
    /// The drivers' references to objects, excluding handles.
    references: HashMap<u64, u32>,
    /// The types of objects that have had a handle, as long as they have handles or references.
    types: HashMap<u64, &'static str>,
    /// The number of objects whose deletion is queued.
    deferred: u32,
}

/// Creates a handle: without `OBJ_KERNEL_HANDLE`, a handle that is valid only in the current process.
pub fn open(context: &Context, target: Target, opening: Opening) -> u64 {
    let is_kernel = opening.attributes & KERNEL_HANDLE != 0;
    let process = (!is_kernel).then(|| thread_objects::current_process_id(context));
    open_in(context, target, process, opening.access)
}

/// Creates a handle in a process's handle table, or a kernel handle.
fn open_in(context: &Context, target: Target, process: Option<u32>, access: u32) -> u64 {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    let first = if process.is_some() { FIRST_OF_PROCESS } else { FIRST };
    let handle = first + handles.issued * STEP;
    handles.issued += 1;
    if let Some(owned) = handles.owned.get_mut(&target.object) {
        owned.handles += 1;
    }
    handles.types.insert(target.object, target.type_name);
    handles.open.insert(handle, Open { target, process, access });
    handle
}

/// Opens a handle of a process or a thread between the pre- and post-operation callbacks.
pub fn open_watched(
    context: &Context,
    target: Target,
    handle: Out<NtObject>,
    opening: Opening,
) -> NtResult {
    let operation = HandleOperation {
        operation: CREATE,
        type_name: target.type_name,
        object: target.object,
        access: opening.access,
        processes: [0; 2],
    };
    callbacks::notify(context, &operation, || {
        handle.write(context, open(context, target, opening));
        Ok(())
    })
}

impl Handles {
    /// Removes the type of an unused object, because a new object can have its address.
    fn forget_unused_type(&mut self, object: u64) {
        let is_open = self.open.values().any(|open| open.target.object == object);
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

/// Returns the target of a handle, if it is valid in the current process.
pub fn target(context: &Context, handle: u64) -> Option<Target> {
    valid(context, handle).map(|open| open.target)
}

/// Returns a handle that is valid in the current process. Warns if it is valid in another one only.
fn valid(context: &Context, handle: u64) -> Option<Open> {
    let open = context.state().get::<Handles>().open.get(&handle).copied()?;
    let current = thread_objects::current_process_id(context);
    match open.process {
        Some(process) if process != current => {
            context.warn(
                Rule::HandleOfOtherProcess,
                &format!(
                    "in process {current} with the handle 0x{handle:X}, which was opened in process \
                     {process} without OBJ_KERNEL_HANDLE and is valid only there"
                ),
            );
            None
        }
        _ => Some(open),
    }
}

/// Returns the rights of a handle to an object of a type whose mask of all rights is `all`.
pub fn granted(context: &Context, handle: u64, all: u32) -> u32 {
    let open = context.state().get::<Handles>().open.get(&handle).copied();
    match open.map_or(GENERIC, |open| open.access) {
        access if access & GENERIC != 0 => all | access & !GENERIC,
        access => access,
    }
}

/// Returns whether a handle is a kernel handle, which is invalid in user mode.
const fn is_kernel(handle: u64) -> bool {
    handle.cast_signed() < 0 && handle != CURRENT_PROCESS && handle != CURRENT_THREAD
}

/// Closes the handles of a process that has ended.
pub fn close_all_of(context: &Context, process: u32) {
    let of_process = context.with_state(|handles: &mut Handles| {
        let all = handles.open.iter().filter(|(_, open)| open.process == Some(process));
        let mut all: Vec<u64> = all.map(|(handle, _)| *handle).collect();
        all.sort_unstable();
        all
    });
    for handle in of_process {
        close_known(context, handle);
    }
}

/// Returns the type (the name of the exported variable) of an object that has a handle, or that has
/// references and had a handle.
pub fn type_of(context: &Context, object: u64) -> Option<&'static str> {
    context.state().get::<Handles>().types.get(&object).copied()
}

/// Closes a handle. Bugchecks if the handle is not open, as Driver Verifier does, unless it is null.
pub fn close(context: &Context, handle: Handle<NtObject>) -> NtStatus {
    if handle.0 == CURRENT_PROCESS || handle.0 == CURRENT_THREAD {
        return NtStatus::SUCCESS;
    }
    if handle.0 == 0 {
        context.warn(Rule::NullHandle, "with a null handle; it fails with STATUS_INVALID_HANDLE");
        return NtStatus::INVALID_HANDLE;
    }
    let is_known = context.state().get::<Handles>().open.contains_key(&handle.0);
    if is_known && valid(context, handle.0).is_none() {
        return NtStatus::INVALID_HANDLE;
    }
    if !is_known || !close_known(context, handle.0) {
        context.stop_for_wrong(handle.0, "an open handle");
    }
    NtStatus::SUCCESS
}

/// Closes a handle, if it is open. Returns whether it was.
fn close_known(context: &Context, handle: u64) -> bool {
    let closed = context.with_state(|handles: &mut Handles| {
        let closed = handles.open.remove(&handle)?.target;
        if let Some(owned) = handles.owned.get_mut(&closed.object) {
            owned.handles = owned.handles.saturating_sub(1);
        }
        handles.forget_unused_type(closed.object);
        Some(closed)
    });
    let Some(closed) = closed else {
        return false;
    };
    (closed.close)(context, closed.object);
    delete_unused(context, closed.object);
    true
}

/// Opens another handle to the object of a handle, unless the flags request only that the source be
/// closed.
fn duplicate(
    context: &Context,
    source_process: Handle<NtObject>,
    source: Handle<NtObject>,
    target_process: Handle<NtObject>,
    target_handle: Out<NtObject>,
    access: u32,
    attributes: u32,
    options: u32,
) -> NtResult {
    /// `DUPLICATE_CLOSE_SOURCE`, `DUPLICATE_SAME_ACCESS` and `DUPLICATE_SAME_ATTRIBUTES`.
    const CLOSE_SOURCE: u32 = 1;
    const SAME_ACCESS: u32 = 2;
    const SAME_ATTRIBUTES: u32 = 4;
    let wants_handle = !target_handle.is_null();
    let from = process_of_handle(context, source_process.0)?;
    let open = context.state().get::<Handles>().open.get(&source.0).copied();
    let open = open.filter(|open| open.process.is_none_or(|process| process == from));
    let found = match open {
        Some(open) => open.target,
        None if is_kernel(source.0) || source.0 < FIRST => return Err(NtStatus::INVALID_HANDLE),
        None => target_of(context, source.0)?,
    };
    if wants_handle {
        let target = process_of_handle(context, target_process.0)?;
        let is_kernel = if options & SAME_ATTRIBUTES == 0 {
            attributes & KERNEL_HANDLE != 0
        } else {
            is_kernel(source.0)
        };
        let access = if options & SAME_ACCESS == 0 {
            access
        } else {
            open.map_or(GENERIC, |open| open.access)
        };
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
            let process = (!is_kernel).then_some(target);
            target_handle.write(context, open_in(context, found, process, access));
            Ok(())
        })?;
    }
    if options & CLOSE_SOURCE != 0 {
        close_known(context, source.0);
    }
    Ok(())
}

/// Returns the id of a handle's process. Fails if the handle is not a process handle.
fn process_of_handle(context: &Context, handle: u64) -> NtResult<u32> {
    must_be_process(context, handle)?;
    let object = target_of(context, handle)?.object;
    let process = thread_objects::process_of(context, object);
    process.map(|(id, _)| id).ok_or(NtStatus::INVALID_HANDLE)
}

/// Fails if a handle is not a process handle.
pub fn must_be_process(context: &Context, handle: u64) -> NtResult {
    let is_process = target_of(context, handle)?.type_name == "PsProcessType";
    if is_process { Ok(()) } else { Err(NtStatus::OBJECT_TYPE_MISMATCH) }
}

/// Closes a handle. In user mode, an invalid handle is an error of a program, not of the driver.
fn close_for(context: &Context, handle: Handle<NtObject>, mode: i8) -> NtStatus {
    let is_refused = || is_kernel(handle.0) || target(context, handle.0).is_none();
    if mode == USER_MODE && is_refused() {
        return NtStatus::INVALID_HANDLE;
    }
    close(context, handle)
}

/// Returns the number of an object's handles, and the number of its references including handles.
pub fn counts(context: &Context, object: u64) -> (u32, u32) {
    let mut state = context.state();
    let handles = state.get::<Handles>();
    let open = handles.open.values().map(|open| open.target);
    let open = open.filter(|target| target.object == object);
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
    access: u32,
    kind: At<ObjectType>,
    mode: i8,
    object: At<u64>,
    information: At<u64>,
) -> NtResult {
    object.write(context, 0);
    if mode == USER_MODE && is_kernel(handle.0) {
        return Err(NtStatus::INVALID_HANDLE);
    }
    let found = target_of(context, handle.0)?;
    if !kind.is_null() && variables::object_type(found.type_name) != Some(kind.0) {
        return Err(NtStatus::OBJECT_TYPE_MISMATCH);
    }
    let rights = granted(context, handle.0, u32::MAX);
    // Only calls for a program check the rights.
    if mode == USER_MODE && access & !GENERIC & !rights != 0 {
        return Err(NtStatus::ACCESS_DENIED);
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
