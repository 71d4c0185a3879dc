//! Callbacks for operations on process and thread handles.

use super::filters::{
    ALTITUDE_COLLISION, CREATE, DUPLICATE, Routines, Watched, add_filter, begin, block_of,
    close_filter, end, has_integrity_check, registered, remove_filter,
};
use crate::{
    execution::{
        routine::{At, Memory, routine},
        strings::read_unicode_string,
    },
    ground::{
        NtResult, NtStatus,
        abi::{ObjectCallbacks, ObjectOperation},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        variables,
    },
};

pub const ENTRIES: Entries = &[
    routine("ObRegisterCallbacks", register_handles),
    routine("ObUnRegisterCallbacks", unregister_handles),
    routine("ObGetFilterVersion", filter_version),
];

/// `OB_FLT_REGISTRATION_VERSION`.
const VERSION: u16 = 0x100;

const fn filter_version(_context: &Context) -> u16 {
    VERSION
}

/// Returns the handle routines of a registration, or the status with which it fails.
fn routines_of(context: &Context, value: &ObjectCallbacks) -> NtResult<Vec<Routines>> {
    const STEP: usize = size_of::<ObjectOperation>();
    if value.version != VERSION || value.operation_registration_count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let mut all = Vec::new();
    for at in (value.operation_registration..)
        .step_by(STEP)
        .take(usize::from(value.operation_registration_count))
    {
        let ObjectOperation {
            object_type: kind,
            operations,
            pre_operation: before,
            post_operation: after,
            ..
        } = context.read(at);
        let kind: u64 = context.read(kind);
        let types = ["PsProcessType", "PsThreadType", "ExDesktopObjectType"];
        let is_supported = types.iter().any(|name| variables::object_type(name) == Some(kind));
        let is_valid = operations & !(CREATE | DUPLICATE) == 0 && operations != 0;
        if !is_supported || !is_valid || (before, after) == (0, 0) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        all.push(Routines { kind, operations, before, after });
    }
    let mut given = all.iter().flat_map(|one| [one.before, one.after]).filter(|one| *one != 0);
    if !given.all(|routine| has_integrity_check(context, routine)) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    Ok(all)
}

/// The creation or duplication of a handle for a driver.
pub struct HandleOperation {
    /// [`CREATE`] or [`DUPLICATE`].
    pub operation: u32,
    /// The exported variable that points to the object's type.
    pub type_name: &'static str,
    pub object: u64,
    pub access: u32,
    /// The objects of the processes from which and to which a handle is duplicated, or 0.
    pub processes: [u64; 2],
}

/// Creates or duplicates a handle between the notifications of the routines for handles. Drivers' handles
/// are kernel handles, whose access the routines cannot change.
pub fn notify(
    context: &Context,
    operation: &HandleOperation,
    body: impl FnOnce() -> NtResult,
) -> NtResult {
    /// The bit `KernelHandle` of the flags, which follow the operation.
    const KERNEL_HANDLE: u64 = 1 << 32;
    let HandleOperation { operation, type_name, object, access, processes } = *operation;
    let kind = variables::object_type(type_name).unwrap_or(0);
    let mut all = registered(context, Watched::Handles);
    all.retain(|one| one.routines.kind == kind && one.routines.operations & operation != 0);
    all.retain(|one| begin(context, one.key));
    if all.is_empty() {
        return body();
    }
    let start = u64::from(operation) | KERNEL_HANDLE;
    let [from, to] = processes;
    let call = |routine: u64, argument: u64, words: &[u64]| {
        let block = block_of(context, words);
        if routine != 0 {
            let what = "the routine for operations on handles";
            context.call_driver(what, routine, [argument, block.address()]);
        }
        context.read::<u64>(block.address() + CALL_CONTEXT)
    };
    let mut call_contexts = Vec::new();
    for one in &all {
        let parameters = block_of(context, &[u64::from(access) * (1 | 1 << 32), from, to]);
        let words = [start, object, kind, 0, parameters.address()];
        call_contexts.push(call(one.routines.before, one.argument, &words));
    }
    let done = body();
    let status = u64::from(done.err().unwrap_or(NtStatus::SUCCESS).bits());
    let granted = block_of(context, &[access.into()]);
    for (one, call_context) in all.iter().zip(call_contexts).rev() {
        let words = [start, object, kind, call_context, status, granted.address()];
        call(one.routines.after, one.argument, &words);
        end(context, one.key);
    }
    done
}

/// The offset of `CallContext`.
const CALL_CONTEXT: u64 = 24;

fn register_handles(
    context: &Context,
    registration: At<ObjectCallbacks>,
    handle: At<u64>,
) -> NtResult {
    let value = registration.read(context);
    let routines = routines_of(context, &value)?;
    let at = std::mem::offset_of!(ObjectCallbacks, altitude) as u64;
    let altitude = read_unicode_string(context, registration.0.wrapping_add(at));
    let key =
        add_filter(context, Watched::Handles, Some(altitude), routines, value.registration_context);
    handle.write(context, key.ok_or(ALTITUDE_COLLISION)?);
    Ok(())
}

fn unregister_handles(context: &Context, handle: Memory) {
    if !close_filter(context, Watched::Handles, handle.0) {
        context.stop_for_wrong(handle.0, "a registration from ObRegisterCallbacks");
    }
    remove_filter(context, Watched::Handles, handle.0);
}
