//! Callbacks for operations on process and thread handles.

use super::filters::{ALTITUDE_COLLISION, Watched, add_filter, has_integrity_check, remove_filter};
use crate::{
    execution::routine::{At, Routine},
    ground::{
        NtResult, NtStatus,
        executive_abi::{ObjectCallbacks, ObjectOperation},
        irql::Irql,
    },
    services::{
        ntoskrnl::{
            context::{Context, Entries},
            data,
        },
        strings::read_unicode_string,
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ObRegisterCallbacks", APC, Routine::of(register_handles)),
    ("ObUnRegisterCallbacks", APC, Routine::of(unregister_handles)),
    ("ObGetFilterVersion", Irql::HIGH_LEVEL, Routine::of(filter_version)),
];

/// `OB_FLT_REGISTRATION_VERSION`.
const VERSION: u16 = 0x100;

const fn filter_version(_context: &Context) -> u16 {
    VERSION
}

/// Returns the handle routines of a registration, or the status with which it fails.
fn routines_of(context: &Context, value: &ObjectCallbacks) -> NtResult<Vec<u64>> {
    const STEP: usize = size_of::<ObjectOperation>();
    /// `OB_OPERATION_HANDLE_CREATE` and `OB_OPERATION_HANDLE_DUPLICATE`.
    const OPERATIONS: u32 = 3;
    if value.version != VERSION || value.count == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    let mut routines = Vec::new();
    for at in (value.operations..).step_by(STEP).take(usize::from(value.count)) {
        let operation: ObjectOperation = context.read(at);
        let kind: u64 = context.read(operation.kind);
        let types = ["PsProcessType", "PsThreadType", "ExDesktopObjectType"];
        let is_supported = types.iter().any(|name| data::object_type(name) == Some(kind));
        let is_valid = operation.operations & !OPERATIONS == 0 && operation.operations != 0;
        let given = [operation.before, operation.after];
        let given: Vec<u64> = given.into_iter().filter(|routine| *routine != 0).collect();
        if !is_supported || !is_valid || given.is_empty() {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        routines.extend(given);
    }
    let is_allowed = |routine: &u64| has_integrity_check(context, *routine);
    if !routines.iter().all(is_allowed) {
        return Err(NtStatus::ACCESS_DENIED);
    }
    Ok(routines)
}

fn register_handles(
    context: &Context,
    registration: At<ObjectCallbacks>,
    handle: At<u64>,
) -> NtResult {
    let value = registration.read(context);
    let routines = routines_of(context, &value)?;
    let at = std::mem::offset_of!(ObjectCallbacks, altitude) as u64;
    let altitude = read_unicode_string(context, registration.0.wrapping_add(at));
    let key = add_filter(context, Watched::Handles, Some(altitude), routines);
    handle.write(context, key.ok_or(ALTITUDE_COLLISION)?);
    Ok(())
}

fn unregister_handles(context: &Context, handle: u64) {
    if !remove_filter(context, Watched::Handles, handle) {
        context.stop_for_wrong(handle, "a registration from ObRegisterCallbacks");
    }
}
