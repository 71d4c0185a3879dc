//! The creation of threads by drivers, and their end.

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
        ob::handles::{self, Opening, Target},
    },
};

pub const ENTRIES: Entries = &[
    routine("PsCreateSystemThread", create),
    routine("IoCreateSystemThread", create_for_object),
    routine("PsTerminateSystemThread", threads::terminate),
];

fn create(
    context: &Context,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    process: Handle<NtObject>,
    client: At<ClientId>,
    routine: Callback,
    start_context: Memory,
) -> NtResult {
    let opening = opening(context, attributes, access);
    let routine = [routine.0, start_context.0];
    create_thread(context, Kind::Drivers, (handle, opening), process.0, client.0, routine)
}

fn create_for_object(
    context: &Context,
    _object: Memory,
    handle: Out<NtObject>,
    access: u32,
    attributes: At<ObjectAttributesNt>,
    process: Handle<NtObject>,
    client: At<ClientId>,
    routine: Callback,
    start_context: Memory,
) -> NtResult {
    let opening = opening(context, attributes, access);
    let routine = [routine.0, start_context.0];
    create_thread(context, Kind::KeepsDriver, (handle, opening), process.0, client.0, routine)
}

fn opening(context: &Context, attributes: At<ObjectAttributesNt>, access: u32) -> Opening {
    let value = attributes.read_optional(context);
    Opening { attributes: value.map_or(0, |value| value.attributes), access }
}

/// Creates a thread, and opens a handle to it.
fn create_thread(
    context: &Context,
    kind: Kind,
    (handle, opening): (Out<NtObject>, Opening),
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
    handles::open_watched(context, Target::thread(object), handle, opening)?;
    let id =
        ClientId { unique_process: identity.process.into(), unique_thread: identity.thread.into() };
    context.write_optional(client, &id);
    Ok(())
}
