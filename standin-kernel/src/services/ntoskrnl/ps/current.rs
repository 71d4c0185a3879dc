//! The current thread and process objects, their ids and times.

use super::processes::known;
use crate::{
    execution::{identity::Identity, routine::Routine},
    ground::irql::Irql,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::thread_objects::{
            current, current_process, exit_status, process_object, top_level_irp, with,
            with_current,
        },
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoGetCurrentProcess", DISPATCH, Routine::of(current_process)),
    ("PsGetCurrentProcess", DISPATCH, Routine::of(current_process)),
    ("PsGetCurrentThread", HIGH, Routine::of(current)),
    ("PsGetProcessId", DISPATCH, Routine::of(process_id)),
    ("PsGetThreadId", DISPATCH, Routine::of(thread_id)),
    ("PsGetThreadProcessId", HIGH, Routine::of(thread_process_id)),
    ("PsIsSystemThread", HIGH, Routine::of(is_system_thread)),
    ("IoIsSystemThread", DISPATCH, Routine::of(is_system_thread)),
    ("PsIsThreadTerminating", DISPATCH, Routine::of(is_terminating)),
    ("PsGetThreadCreateTime", HIGH, Routine::of(create_time)),
    ("PsGetThreadExitStatus", APC, Routine::of(exit_status)),
    ("IoGetTopLevelIrp", DISPATCH, Routine::of(top_level_irp)),
    ("IoSetTopLevelIrp", DISPATCH, Routine::of(set_top_level_irp)),
    ("PsGetCurrentProcessId", HIGH, Routine::of(ps_get_current_process_id)),
    ("PsGetCurrentThreadId", Irql::DISPATCH_LEVEL, Routine::of(ps_get_current_thread_id)),
];

fn process_id(context: &Context, process: u64) -> u64 {
    let (id, _) = known(context, process);
    id.into()
}

fn thread_id(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.identity.thread))
}

fn thread_process_id(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.identity.process))
}

fn is_system_thread(context: &Context, thread: u64) -> bool {
    let process = with(context, thread, |object| object.identity.process);
    process == Identity::SYSTEM.process
}

fn is_terminating(context: &Context, thread: u64) -> bool {
    with(context, thread, |object| object.has_ended)
}

/// Returns the start time of a thread, in units of 100 ns since 1601.
fn create_time(context: &Context, thread: u64) -> i64 {
    let created = with(context, thread, |object| object.created);
    context.clock().file_time(created)
}

/// Stores the top-level IRP of the current thread. File systems use it to detect recursion.
fn set_top_level_irp(context: &Context, irp: u64) {
    with_current(context, |object| object.top_level_irp = irp);
}

fn ps_get_current_process_id(context: &Context) -> u64 {
    let process = context.identity().process;
    // From now on, the driver can look up the process.
    process_object(context.ntoskrnl(), process);
    u64::from(process)
}

fn ps_get_current_thread_id(context: &Context) -> u64 {
    u64::from(context.identity().thread)
}
