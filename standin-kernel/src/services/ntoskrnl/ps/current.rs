//! Threads and processes as objects: the current ones, their ids and times.

use crate::{
    execution::{identity::Identity, routine::Routine},
    ground::irql::Irql,
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::thread_objects::{
            current, current_process, exit_status, process_object, process_of, top_level_irp, with,
        },
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("IoGetCurrentProcess", DISPATCH, Routine::Zero(current_process)),
    ("PsGetCurrentProcess", DISPATCH, Routine::Zero(current_process)),
    ("PsGetCurrentThread", HIGH, Routine::Zero(current)),
    ("PsGetProcessId", DISPATCH, Routine::One(process_id)),
    ("PsGetThreadId", DISPATCH, Routine::One(thread_id)),
    ("PsGetThreadProcessId", HIGH, Routine::One(thread_process_id)),
    ("PsIsSystemThread", HIGH, Routine::One(is_system_thread)),
    ("IoIsSystemThread", DISPATCH, Routine::One(is_system_thread)),
    ("PsIsThreadTerminating", DISPATCH, Routine::One(is_terminating)),
    ("PsGetThreadCreateTime", HIGH, Routine::One(create_time)),
    ("PsGetThreadExitStatus", APC, Routine::One(exit_status)),
    ("IoGetTopLevelIrp", DISPATCH, Routine::Zero(top_level_irp)),
    ("IoSetTopLevelIrp", DISPATCH, Routine::One(set_top_level_irp)),
    ("PsGetCurrentProcessId", HIGH, Routine::Zero(ps_get_current_process_id)),
    ("PsGetCurrentThreadId", Irql::DISPATCH_LEVEL, Routine::Zero(ps_get_current_thread_id)),
];

fn process_id(context: &Context, process: u64) -> u64 {
    let found = process_of(context, process).map(|(id, _)| u64::from(id));
    found.unwrap_or_else(|| {
        context.stop_for_misuse(&format!("with 0x{process:016X}, which is not a process object"))
    })
}

fn thread_id(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.identity.thread))
}

fn thread_process_id(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.identity.process))
}

fn is_system_thread(context: &Context, thread: u64) -> u64 {
    let process = with(context, thread, |object| object.identity.process);
    u64::from(process == Identity::SYSTEM.process)
}

fn is_terminating(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.has_ended))
}

/// Returns when a thread began, in units of 100 ns since 1601.
fn create_time(context: &Context, thread: u64) -> u64 {
    let created = with(context, thread, |object| object.created);
    context.clock().file_time(created).cast_unsigned()
}

/// Stores what file systems tell the top of their recursion by, for the current thread.
fn set_top_level_irp(context: &Context, irp: u64) -> u64 {
    let thread = current(context);
    with(context, thread, |object| object.top_level_irp = irp);
    0
}

fn ps_get_current_process_id(context: &Context) -> u64 {
    let process = context.identity().process;
    // From now on, the driver may look for the process.
    process_object(context.ntoskrnl(), process);
    u64::from(process)
}

fn ps_get_current_thread_id(context: &Context) -> u64 {
    u64::from(context.identity().thread)
}
