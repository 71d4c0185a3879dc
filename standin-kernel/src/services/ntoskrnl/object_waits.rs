//! Waits for the objects to which handles refer.

use std::collections::HashSet;

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Handle, Out, routine},
    },
    ground::{NtResult, NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        ex::named_events::event_of,
        io::send,
        ke::dispatcher,
        ob::handles,
    },
};

pub const ENTRIES: Entries = &[
    routine("ZwWaitForSingleObject", wait),
    routine("ZwWaitForMultipleObjects", wait_for_several),
];

const INVALID_PARAMETER_MIX: NtStatus = NtStatus::from_bits(0xC000_0030);
const INVALID_PARAMETER_1: NtStatus = NtStatus::from_bits(0xC000_00EF);
const INVALID_PARAMETER_3: NtStatus = NtStatus::from_bits(0xC000_00F1);

/// The types of waitable objects other than events and files.
const WAITABLE_TYPES: [&str; 2] = ["PsThreadType", "PsProcessType"];

/// Returns the event, thread or process of a handle, or the event of its file.
fn waitable(context: &Context, handle: u64) -> NtResult<u64> {
    match handles::target_of(context, handle)? {
        target if WAITABLE_TYPES.contains(&target.type_name) => Ok(target.object),
        target if target.type_name == "IoFileObjectType" => Ok(target.object + send::FILE_EVENT),
        _ => event_of(context, handle),
    }
}

fn wait(
    context: &Context,
    handle: Handle<NtObject>,
    _alertable: bool,
    timeout: At<i64>,
) -> NtResult<NtStatus> {
    let timeout = timeout.read_optional(context);
    let object = waitable(context, handle.0)?;
    Ok(dispatcher::wait(context, vec![object], false, timeout))
}

/// Waits for one or all of the objects to which handles refer.
fn wait_for_several(
    context: &Context,
    count: u32,
    handles: Out<NtObject>,
    wait_type: u32,
    _alertable: bool,
    timeout: At<i64>,
) -> NtResult<NtStatus> {
    /// `MAXIMUM_WAIT_OBJECTS`.
    const MAXIMUM: u32 = 64;
    /// `WaitAll` and `WaitAny`.
    const ALL: u32 = 0;
    const ANY: u32 = 1;
    if !(1..=MAXIMUM).contains(&count) {
        return Err(INVALID_PARAMETER_1);
    }
    if ![ALL, ANY].contains(&wait_type) {
        return Err(INVALID_PARAMETER_3);
    }
    let timeout = timeout.read_optional(context);
    let handle = |number: u32| context.read(handles.0.wrapping_add(u64::from(number) * 8));
    let objects = (0..count).map(|number| waitable(context, handle(number)));
    let objects = objects.collect::<NtResult<Vec<u64>>>()?;
    let different: HashSet<&u64> = objects.iter().collect();
    if wait_type == ALL && different.len() < objects.len() {
        return Err(INVALID_PARAMETER_MIX);
    }
    Ok(dispatcher::wait(context, objects, wait_type == ALL, timeout))
}
