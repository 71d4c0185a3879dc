//! The objects of threads and processes, and what the kernel keeps for each. Their fields are opaque to
//! drivers.

use crate::{
    execution::{
        identity::Identity,
        routine::{Routine, low_half},
    },
    ground::{arena::Block, irql::Irql, status::NtStatus},
    services::{
        ntoskrnl::context::{Context, Entries, Ntoskrnl},
        parts::Parts,
    },
};
use std::collections::{HashMap, HashSet};

/// The size of a process object. No header declares its fields.
const SIZE: usize = 0x100;

/// The place of the image's file name in a process object, and its size with the end.
pub const FILE_NAME: u64 = 0xF0;

pub const FILE_NAME_SIZE: usize = 15;

/// The priority of a system thread: `LOW_REALTIME_PRIORITY` is 16, and this is the normal one.
const NORMAL_PRIORITY: i32 = 8;

const HIGH: Irql = Irql::HIGH_LEVEL;
const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeGetCurrentThread", HIGH, Routine::Zero(current)),
    ("KeSetPriorityThread", DISPATCH, Routine::Two(set_priority)),
    ("KeSetBasePriorityThread", DISPATCH, Routine::Two(set_base_priority)),
    ("KeQueryPriorityThread", Irql::PASSIVE_LEVEL, Routine::One(query_priority)),
    ("KeEnterCriticalRegion", APC, Routine::Zero(enter_region)),
    ("KeLeaveCriticalRegion", APC, Routine::Zero(leave_region)),
    ("KeEnterGuardedRegion", APC, Routine::Zero(enter_guarded)),
    ("KeLeaveGuardedRegion", APC, Routine::Zero(leave_guarded)),
    ("KeAreAllApcsDisabled", DISPATCH, Routine::Zero(are_all_apcs_disabled)),
    ("KeAreApcsDisabled", DISPATCH, Routine::Zero(are_apcs_disabled)),
    ("KeSetSystemAffinityThreadEx", APC, Routine::One(set_affinity)),
    ("KeRevertToUserAffinityThreadEx", APC, Routine::One(revert_affinity)),
    ("KeSetSystemGroupAffinityThread", APC, Routine::Two(set_group_affinity)),
    ("KeRevertToUserGroupAffinityThread", APC, Routine::One(revert_group_affinity)),
];

/// The threads by their objects' addresses, and the processes' objects by their ids.
#[derive(Default)]
struct Objects {
    threads: HashMap<u64, ThreadObject>,
    processes: HashMap<u32, ProcessObject>,
}

struct ProcessObject {
    memory: Block,
    /// The path of the image, if a test started the process with one.
    image: Option<String>,
    /// The counter's reading when the kernel first knew the process.
    created: i64,
    /// The status with which the process has ended.
    ended: Option<NtStatus>,
}

pub struct ThreadObject {
    pub identity: Identity,
    pub priority: i32,
    /// The processors that the driver chose, or 0.
    pub affinity: u64,
    /// The critical and guarded regions that the thread is in.
    pub regions: u32,
    /// The guarded ones among them.
    pub guarded: u32,
    /// The counter's reading when the kernel first knew the thread.
    pub created: i64,
    /// The status with which the thread ends, or has ended.
    pub exit_status: NtStatus,
    /// What `IoSetTopLevelIrp` stored.
    pub top_level_irp: u64,
    /// Set once the thread has ended, which ends the waits for it.
    pub has_ended: bool,
    /// The processes that the thread is attached to, the current one last.
    pub attached: Vec<u64>,
}

/// Returns the address of the current thread's object.
pub fn current(context: &Context) -> u64 {
    of_thread(context, context.identity())
}

/// Returns the address of a thread's object.
pub fn of_thread(context: &Context, identity: Identity) -> u64 {
    let address = context.thread_objects().of(identity);
    let created = context.clock().last();
    let mut state = context.state();
    let threads = &mut state.get::<Objects>().threads;
    threads.entry(address).or_insert(ThreadObject {
        identity,
        priority: NORMAL_PRIORITY,
        affinity: 0,
        regions: 0,
        guarded: 0,
        created,
        exit_status: NtStatus::SUCCESS,
        top_level_irp: 0,
        has_ended: false,
        attached: Vec::new(),
    });
    address
}

/// Returns whether a thread has ended, if the address is that of a thread's object.
pub fn has_ended(context: &Context, address: u64) -> Option<bool> {
    let mut state = context.state();
    let thread = state.get::<Objects>().threads.get(&address);
    thread.map(|thread| thread.has_ended)
}

/// Returns the objects of the threads that have ended.
pub fn ended(state: &mut Parts) -> HashSet<u64> {
    let threads = state.get::<Objects>().threads.iter();
    let ended = threads.filter(|(_, thread)| thread.has_ended);
    ended.map(|(address, _)| *address).collect()
}

/// Notes that the current thread ends.
pub fn note_end(context: &Context) {
    let thread = current(context);
    with(context, thread, |thread| thread.has_ended = true);
}

/// Forgets a thread that has ended and that nothing refers to.
pub fn forget_thread(context: &Context, identity: Identity) {
    let address = context.thread_objects().of(identity);
    context.state().get::<Objects>().threads.remove(&address);
}

/// Returns the number of regions that the current thread is in, in which it gets no asynchronous
/// procedure calls.
pub fn regions(context: &Context) -> u32 {
    let thread = current(context);
    with(context, thread, |object| object.regions)
}

/// Runs `body` on a thread's object. Bugchecks if the address is not that of one.
pub fn with<R>(context: &Context, address: u64, body: impl FnOnce(&mut ThreadObject) -> R) -> R {
    let result = context.state().get::<Objects>().threads.get_mut(&address).map(body);
    result.unwrap_or_else(|| {
        context.stop_for_misuse(&format!("with 0x{address:016X}, which is not a thread object"))
    })
}

/// Returns the address of a process's object.
pub fn process_object(nt: &Ntoskrnl, process: u32) -> u64 {
    let created = nt.clock().last();
    let mut state = nt.state();
    let processes = &mut state.get::<Objects>().processes;
    let object = processes.entry(process).or_insert_with(|| ProcessObject {
        memory: Block::zeroed(SIZE),
        image: None,
        created,
        ended: None,
    });
    object.memory.address()
}

/// Returns the id of a process and the counter's reading when it began, by its object.
pub fn process_of(context: &Context, object: u64) -> Option<(u32, i64)> {
    let mut state = context.state();
    let mut all = state.get::<Objects>().processes.iter();
    all.find(|(_, process)| process.memory.address() == object)
        .map(|(id, process)| (*id, process.created))
}

/// Notes the path of a process's image.
pub fn note_image(context: &Context, process: u32, path: &str) {
    process_object(context.ntoskrnl(), process);
    let mut state = context.state();
    if let Some(object) = state.get::<Objects>().processes.get_mut(&process) {
        object.image = Some(path.to_owned());
    }
}

/// Returns the path of a process's image, if a test started the process with one.
pub fn image_of(context: &Context, process: u32) -> Option<String> {
    let mut state = context.state();
    let object = state.get::<Objects>().processes.get(&process)?;
    object.image.clone()
}

/// Returns whether a process with this id runs: one that drivers have seen.
pub fn is_running(context: &Context, process: u32) -> bool {
    if [Identity::SYSTEM.process, context.identity().process].contains(&process) {
        return true;
    }
    let mut state = context.state();
    let objects = state.get::<Objects>();
    let has_thread = || {
        let mut threads = objects.threads.values();
        threads.any(|one| one.identity.process == process && !one.has_ended)
    };
    let known = objects.processes.get(&process);
    known.map_or_else(has_thread, |object| object.ended.is_none())
}

/// Notes that a process has ended, or returns the status with which it has.
pub fn process_end(context: &Context, process: u32, status: Option<NtStatus>) -> Option<NtStatus> {
    let mut state = context.state();
    let object = state.get::<Objects>().processes.get_mut(&process)?;
    object.ended = object.ended.or(status);
    object.ended
}

/// Returns whose object of a thread an address is.
pub fn identity_of(context: &Context, thread: u64) -> Option<Identity> {
    let mut state = context.state();
    let thread = state.get::<Objects>().threads.get(&thread)?;
    Some(thread.identity)
}

/// Returns the object of a thread that has not ended, by the thread's id.
pub fn thread_by_id(context: &Context, id: u32) -> Option<u64> {
    if context.identity().thread == id {
        return Some(current(context));
    }
    let mut state = context.state();
    let mut threads = state.get::<Objects>().threads.iter();
    let found = threads.find(|(_, one)| one.identity.thread == id && !one.has_ended);
    found.map(|(address, _)| *address)
}

/// Attaches the current thread to a process, or detaches it from the last one.
pub fn attach(context: &Context, process: Option<u64>) -> bool {
    let thread = current(context);
    with(context, thread, |thread| match process {
        Some(process) => {
            thread.attached.push(process);
            true
        }
        None => thread.attached.pop().is_some(),
    })
}

/// Returns whether the current thread is attached to another process than its own.
pub fn is_attached(context: &Context) -> bool {
    let own = process_object(context.ntoskrnl(), context.identity().process);
    let thread = current(context);
    with(context, thread, |thread| thread.attached.iter().any(|process| *process != own))
}

/// Returns the process that the current thread is in.
pub fn current_process(context: &Context) -> u64 {
    let thread = current(context);
    let attached = with(context, thread, |thread| thread.attached.last().copied());
    attached.unwrap_or_else(|| process_object(context.ntoskrnl(), context.identity().process))
}

fn check_priority(context: &Context, priority: i32) {
    if !(1..32).contains(&priority) {
        context.stop_for_misuse(&format!("with the priority {priority}; priorities are 1 to 31"));
    }
}

/// Sets a thread's priority, which decides nothing here: the threads of the stand-in kernel take
/// turns.
fn set_priority(context: &Context, thread: u64, priority: u64) -> u64 {
    let priority = low_half(priority).cast_signed();
    check_priority(context, priority);
    let before = with(context, thread, |object| std::mem::replace(&mut object.priority, priority));
    u64::from(before.cast_unsigned())
}

/// Sets a thread's priority relative to its process's.
fn set_base_priority(context: &Context, thread: u64, increment: u64) -> u64 {
    let priority = NORMAL_PRIORITY.saturating_add(low_half(increment).cast_signed());
    let priority = priority.clamp(1, 31);
    let before = with(context, thread, |object| std::mem::replace(&mut object.priority, priority));
    u64::from((before - NORMAL_PRIORITY).cast_unsigned())
}

fn query_priority(context: &Context, thread: u64) -> u64 {
    u64::from(with(context, thread, |object| object.priority).cast_unsigned())
}

/// Enters a critical or guarded region.
pub fn enter_region(context: &Context) -> u64 {
    let thread = current(context);
    with(context, thread, |object| object.regions += 1);
    0
}

/// Enters a guarded region.
pub fn enter_guarded(context: &Context) -> u64 {
    let thread = current(context);
    with(context, thread, |object| {
        object.regions += 1;
        object.guarded += 1;
    });
    0
}

/// Leaves a critical region.
pub fn leave_region(context: &Context) -> u64 {
    let thread = current(context);
    let left = with(context, thread, |object| {
        let critical = object.regions.checked_sub(object.guarded)?;
        object.regions -= u32::from(critical > 0);
        (critical > 0).then_some(())
    });
    if left.is_none() {
        context.stop_for_misuse("without a critical region that its thread has entered");
    }
    0
}

/// Leaves a guarded region.
pub fn leave_guarded(context: &Context) -> u64 {
    let thread = current(context);
    let left = with(context, thread, |object| {
        object.guarded = object.guarded.checked_sub(1)?;
        object.regions = object.regions.checked_sub(1)?;
        Some(())
    });
    if left.is_none() {
        context.stop_for_misuse("without a guarded region that its thread has entered");
    }
    0
}

/// Returns whether the thread is in a critical or guarded region, whatever the IRQL.
fn are_apcs_disabled(context: &Context) -> u64 {
    u64::from(regions(context) > 0)
}

/// Returns whether the current thread gets no asynchronous procedure calls at all, those of the kernel
/// included.
pub fn gets_no_calls(context: &Context) -> bool {
    let thread = current(context);
    context.irql() >= APC || with(context, thread, |object| object.guarded > 0)
}

fn are_all_apcs_disabled(context: &Context) -> u64 {
    u64::from(gets_no_calls(context))
}

/// Notes the status with which the current thread ends.
pub fn note_exit_status(context: &Context, status: NtStatus) {
    let thread = current(context);
    with(context, thread, |object| object.exit_status = status);
}

/// Returns the status with which a thread has ended, or `STATUS_PENDING`.
pub fn exit_status(context: &Context, thread: u64) -> u64 {
    let ended = with(context, thread, |object| object.has_ended.then_some(object.exit_status));
    ended.unwrap_or(NtStatus::PENDING).to_register()
}

pub fn top_level_irp(context: &Context) -> u64 {
    let thread = current(context);
    with(context, thread, |object| object.top_level_irp)
}

/// Returns the processors of this kernel, a bit for each.
pub fn processors(context: &Context) -> u64 {
    u64::MAX >> (64 - u32::from(context.processors().clamp(1, 64)))
}

fn replace_affinity(context: &Context, affinity: u64) -> u64 {
    let thread = current(context);
    with(context, thread, |object| std::mem::replace(&mut object.affinity, affinity))
}

/// Chooses the thread's processors. Threads of the stand-in kernel stay on theirs.
fn set_affinity(context: &Context, affinity: u64) -> u64 {
    let affinity = affinity & processors(context);
    if affinity == 0 {
        return 0;
    }
    replace_affinity(context, affinity)
}

fn revert_affinity(context: &Context, affinity: u64) -> u64 {
    replace_affinity(context, affinity & processors(context));
    0
}

/// Chooses processors of a group. The only group is 0.
fn set_group_affinity(context: &Context, affinity: u64, previous: u64) -> u64 {
    let wanted: [u64; 2] = context.read(affinity);
    let mask = wanted[0] & processors(context);
    let before =
        if mask == 0 || wanted[1] & 0xFFFF != 0 { 0 } else { replace_affinity(context, mask) };
    if previous != 0 {
        context.write(previous, &[before, 0]);
    }
    0
}

fn revert_group_affinity(context: &Context, previous: u64) -> u64 {
    let wanted: [u64; 2] = context.read(previous);
    replace_affinity(context, wanted[0] & processors(context));
    0
}
