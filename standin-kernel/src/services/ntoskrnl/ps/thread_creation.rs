//! The creation of threads by drivers.

use crate::{
    execution::routine::Routine,
    ground::{abi::ClientId, irql::Irql, status::NtStatus},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::{
            thread_objects,
            threads::{self, Kind},
        },
        ob::handles::{self, Target},
    },
};

const PASSIVE: Irql = Irql::PASSIVE_LEVEL;

pub const ENTRIES: Entries = &[
    ("PsCreateSystemThread", PASSIVE, Routine::Seven(create)),
    ("IoCreateSystemThread", PASSIVE, Routine::Eight(create_for_object)),
];

fn create(context: &Context, arguments: [u64; 7]) -> u64 {
    let [handle, _access, _attributes, process, client, routine, its_context] = arguments;
    create_thread(context, Kind::Drivers, handle, process, client, [routine, its_context])
}

fn create_for_object(context: &Context, arguments: [u64; 8]) -> u64 {
    let [_object, handle, _access, _attributes, process, client, routine, its_context] = arguments;
    let kind = Kind::KeepsDriver;
    create_thread(context, kind, handle, process, client, [routine, its_context])
}

/// Creates a thread, and opens a handle to it.
fn create_thread(
    context: &Context,
    kind: Kind,
    handle: u64,
    process: u64,
    client: u64,
    routine: [u64; 2],
) -> u64 {
    // A process other than the system's needs its handle, which no driver here has.
    if process != 0 && process != handles::CURRENT_PROCESS {
        return NtStatus::INVALID_HANDLE.to_register();
    }
    let Ok(identity) = threads::create(context, kind, routine) else {
        return NtStatus::INSUFFICIENT_RESOURCES.to_register();
    };
    let object = thread_objects::of_thread(context, identity);
    let value = handles::open(context, Target::thread(object));
    context.write(handle, &value);
    if client != 0 {
        let id =
            ClientId { process: u64::from(identity.process), thread: u64::from(identity.thread) };
        context.write(client, &id);
    }
    NtStatus::SUCCESS.to_register()
}
