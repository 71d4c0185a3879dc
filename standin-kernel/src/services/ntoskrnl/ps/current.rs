//! The current thread and process objects, their ids and times.

use super::processes::known;
use crate::{
    execution::{
        identity::Identity,
        kinds::NtObject,
        routine::{At, Handle, routine},
    },
    ground::{
        abi::Irp,
        opaque::{KernelProcess, KernelThread},
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::thread_objects::{
            current, current_process, exit_status, process_object, top_level_irp, with,
            with_current,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("IoGetCurrentProcess", current_process),
    routine("PsGetCurrentProcess", current_process),
    routine("PsGetCurrentThread", current),
    routine("PsGetProcessId", process_id),
    routine("PsGetThreadId", thread_id),
    routine("PsGetThreadProcessId", thread_process_id),
    routine("PsIsSystemThread", is_system_thread),
    routine("IoIsSystemThread", is_system_thread),
    routine("PsIsThreadTerminating", is_terminating),
    routine("PsGetThreadCreateTime", create_time),
    routine("PsGetThreadExitStatus", exit_status),
    routine("IoGetTopLevelIrp", top_level_irp),
    routine("IoSetTopLevelIrp", set_top_level_irp),
    routine("PsGetCurrentProcessId", ps_get_current_process_id),
    routine("PsGetCurrentThreadId", ps_get_current_thread_id),
];

fn process_id(context: &Context, process: At<KernelProcess>) -> Handle<NtObject> {
    let (id, _) = known(context, process.0);
    Handle::new(id.into())
}

fn thread_id(context: &Context, thread: At<KernelThread>) -> Handle<NtObject> {
    Handle::new(u64::from(with(context, thread.0, |object| object.identity.thread)))
}

fn thread_process_id(context: &Context, thread: At<KernelThread>) -> Handle<NtObject> {
    Handle::new(u64::from(with(context, thread.0, |object| object.identity.process)))
}

fn is_system_thread(context: &Context, thread: At<KernelThread>) -> bool {
    let process = with(context, thread.0, |object| object.identity.process);
    process == Identity::SYSTEM.process
}

fn is_terminating(context: &Context, thread: At<KernelThread>) -> bool {
    with(context, thread.0, |object| object.has_ended)
}

/// Returns the start time of a thread, in units of 100 ns since 1601.
fn create_time(context: &Context, thread: At<KernelThread>) -> i64 {
    let created = with(context, thread.0, |object| object.created);
    context.clock().file_time(created)
}

/// Stores the top-level IRP of the current thread. File systems use it to detect recursion.
fn set_top_level_irp(context: &Context, irp: At<Irp>) {
    with_current(context, |object| object.top_level_irp = irp.0);
}

fn ps_get_current_process_id(context: &Context) -> Handle<NtObject> {
    let process = context.identity().process;
    // From now on, the driver can look up the process.
    process_object(context.ntoskrnl(), process);
    Handle::new(u64::from(process))
}

fn ps_get_current_thread_id(context: &Context) -> Handle<NtObject> {
    Handle::new(u64::from(context.identity().thread))
}
