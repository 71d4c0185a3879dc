//! The creation of threads by drivers.

use crate::{
    execution::{
        kinds::NtObject,
        routine::{At, Callback, Handle, Memory, Out, routine},
    },
    ground::{
        NtResult, NtStatus,
        abi::{ClientId, ObjectAttributesNt},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            thread_objects,
            threads::{self, Kind},
        },
        ob::handles::{self, Target},
    },
};

pub const ENTRIES: Entries =
    &[routine("PsCreateSystemThread", create), routine("IoCreateSystemThread", create_for_object)];

fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    _attributes: At<ObjectAttributesNt>,
    process: Handle<NtObject>,
    client: At<ClientId>,
    routine: Callback,
    its_context: Memory,
) -> NtResult {
    create_thread(
        context,
        Kind::Drivers,
        (handle, access),
        process.0,
        client.0,
        [routine.0, its_context.0],
    )
}

fn create_for_object(
    context: &Context,
    _object: Memory,
    handle: Out<NtObject>,
    access: u32,
    _attributes: At<ObjectAttributesNt>,
    process: Handle<NtObject>,
    client: At<ClientId>,
    routine: Callback,
    its_context: Memory,
) -> NtResult {
    let kind = Kind::KeepsDriver;
    create_thread(context, kind, (handle, access), process.0, client.0, [routine.0, its_context.0])
}

/// Creates a thread, and opens a handle to it.
fn create_thread(
    context: &Context,
    kind: Kind,
    (handle, access): (Out<NtObject>, u32),
    process: u64,
    client: u64,
    routine: [u64; 2],
) -> NtResult {
    // A process other than the system process requires a handle. In the stand-in kernel, no driver
    // has such a handle.
    if process != 0 && process != handles::CURRENT_PROCESS {
        return Err(NtStatus::INVALID_HANDLE);
    }
    let created = threads::create(context, kind, routine);
    let identity = created.map_err(|_| NtStatus::INSUFFICIENT_RESOURCES)?;
    let object = thread_objects::object_of(context, identity);
    handles::open_watched(context, Target::thread(object), handle, access)?;
    let id =
        ClientId { unique_process: identity.process.into(), unique_thread: identity.thread.into() };
    context.write_optional(client, &id);
    Ok(())
}
