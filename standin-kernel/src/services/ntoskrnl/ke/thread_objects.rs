//! Thread and process objects, and the kernel's data for each object. The objects' fields are
//! opaque to drivers.

use crate::{
    execution::{
        identity::Identity,
        routine::{At, routine},
    },
    ground::{
        NtStatus,
        abi::{DispatcherHeader, Irp, dispatcher_kind},
        arena::Block,
        irql::Irql,
        memory,
        opaque::{GroupAffinity, KernelProcess, KernelThread},
    },
    services::{
        managers::module_states::ModuleStates,
        ntoskrnl::context::{Context, Entries, Ntoskrnl},
    },
};
use std::collections::{HashMap, HashSet};

/// The size of a process object. No header declares its fields after the dispatcher header.
const SIZE: usize = 0x100;

/// The offset of the image's file name in a process object, and its size including the terminator.
pub const FILE_NAME: u64 = 0xF0;

pub const FILE_NAME_SIZE: usize = 15;

/// The priority of a process, and of its threads until they change it.
const NORMAL_PRIORITY: i32 = 8;

/// `LOW_REALTIME_PRIORITY`: the kernel does not change priorities of this value or higher.
const LOW_REALTIME_PRIORITY: i32 = 16;

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    routine("KeGetCurrentThread", current),
    routine("KeSetPriorityThread", set_priority),
    routine("KeSetBasePriorityThread", set_base_priority),
    routine("KeQueryPriorityThread", query_priority),
    routine("KeEnterCriticalRegion", enter_region),
    routine("KeEnterGuardedRegion", enter_guarded),
    routine("KeAreAllApcsDisabled", gets_no_calls),
    routine("KeAreApcsDisabled", are_apcs_disabled),
    routine("KeSetSystemAffinityThread", set_affinity_for_now),
    routine("KeRevertToUserAffinityThread", revert_affinity_for_now),
    routine("KeSetSystemAffinityThreadEx", set_affinity),
    routine("KeRevertToUserAffinityThreadEx", revert_affinity),
    routine("KeSetSystemGroupAffinityThread", set_group_affinity),
    routine("KeRevertToUserGroupAffinityThread", revert_group_affinity),
];

/// The threads, by object address, and the process objects, by process id.
#[derive(Default)]
struct Objects {
    threads: HashMap<u64, ThreadObject>,
    processes: HashMap<u32, ProcessObject>,
}

struct ProcessObject {
    memory: Block,
    /// The path of the image, if a test specified one when it started the process.
    image: Option<String>,
    /// The counter's reading at the kernel's first encounter with the process.
    created: i64,
    /// The status with which the process has ended.
    ended: Option<NtStatus>,
}

pub struct ThreadObject {
    pub identity: Identity,
    /// The thread's priority without and with its boost.
    pub priorities: [i32; 2],
    /// The priority that `KeSetBasePriorityThread` sets.
    pub base_priority: i32,
    /// Set while the normal routine of an APC runs.
    pub runs_apc: bool,
    /// The processors that the driver selected, or 0.
    pub affinity: u64,
    /// The number of critical and guarded regions that the thread has entered.
    pub regions: u32,
    /// The number of guarded regions among them.
    pub guarded: u32,
    /// The number of mutexes that the thread owns and that put it in critical regions.
    pub mutexes: u32,
    /// The counter's reading at the kernel's first encounter with the thread.
    pub created: i64,
    /// The status with which the thread is ending or has ended.
    pub exit_status: NtStatus,
    /// The value that `IoSetTopLevelIrp` stored.
    pub top_level_irp: u64,
    /// Set once the thread has ended. Waits for the thread then end.
    pub has_ended: bool,
    /// The processes to which the thread is attached, current process last.
    pub attached: Vec<u64>,
    /// The client that the thread impersonates.
    pub client: Option<Client>,
}

/// A client that a thread impersonates. It holds a reference to the token.
#[derive(Clone, Copy)]
pub struct Client {
    pub token: u64,
    /// The impersonation level.
    pub level: i32,
    /// Set if the token is copied when it is opened.
    pub copies: bool,
    /// Set if the client's disabled groups and privileges cannot be enabled.
    pub is_effective: bool,
}

/// The tokens of the clients that threads impersonated when they ended.
#[derive(Default)]
struct LeftTokens(Vec<u64>);

/// Ends the impersonation of the current thread, which is ending. Returns whether it impersonated a client.
pub fn end_impersonation(context: &Context) -> bool {
    let client = with_current(context, |thread| thread.client.take());
    context.state().get::<LeftTokens>().0.extend(client.map(|client| client.token));
    client.is_some()
}

/// Returns and removes the tokens of the clients that threads impersonated when they ended.
pub fn take_left_tokens(context: &Context) -> Vec<u64> {
    std::mem::take(&mut context.state().get::<LeftTokens>().0)
}

/// Returns the address of the current thread's object.
pub fn current(context: &Context) -> At<KernelThread> {
    At::new(object_of(context, context.identity()))
}

/// Runs `body` on the current thread's object.
pub fn with_current<R>(context: &Context, body: impl FnOnce(&mut ThreadObject) -> R) -> R {
    with(context, current(context).0, body)
}

/// Returns the address of a thread's object.
pub fn object_of(context: &Context, identity: Identity) -> u64 {
    let address = context.thread_objects().address(identity);
    let created = context.clock().last();
    let mut state = context.state();
    let threads = &mut state.get::<Objects>().threads;
    threads.entry(address).or_insert(ThreadObject {
        identity,
        priorities: [NORMAL_PRIORITY; 2],
        base_priority: NORMAL_PRIORITY,
        runs_apc: false,
        affinity: 0,
        regions: 0,
        guarded: 0,
        mutexes: 0,
        created,
        exit_status: NtStatus::SUCCESS,
        top_level_irp: 0,
        has_ended: false,
        attached: Vec::new(),
        client: None,
    });
    address
}

/// Returns whether a thread has ended, or `None` if no thread object is at the address.
pub fn has_ended(context: &Context, address: u64) -> Option<bool> {
    context.with_state(|all: &mut Objects| Some(all.threads.get(&address)?.has_ended))
}

/// Returns the objects of the threads that have ended.
pub fn ended(state: &mut ModuleStates) -> HashSet<u64> {
    let threads = state.get::<Objects>().threads.iter();
    let ended = threads.filter(|(_, thread)| thread.has_ended);
    ended.map(|(address, _)| *address).collect()
}

/// Records that the current thread ends.
pub fn note_end(context: &Context) {
    with_current(context, |thread| thread.has_ended = true);
}

/// Removes a thread that has ended and is no longer referenced.
pub fn forget_thread(context: &Context, identity: Identity) {
    let address = context.thread_objects().address(identity);
    context.state().get::<Objects>().threads.remove(&address);
}

/// Records the threads that have acquired mutexes.
pub fn note_mutexes(state: &mut ModuleStates, owners: &[u64]) {
    let threads = &mut state.get::<Objects>().threads;
    for owner in owners {
        if let Some(thread) = threads.get_mut(owner) {
            thread.mutexes = thread.mutexes.saturating_add(1);
        }
    }
}

/// Records that the current thread has released a mutex.
pub fn release_mutex(context: &Context) {
    with_current(context, |thread| thread.mutexes = thread.mutexes.saturating_sub(1));
}

/// Runs `body` on a thread's object. Bugchecks if no thread object is at the address.
pub fn with<R>(context: &Context, address: u64, body: impl FnOnce(&mut ThreadObject) -> R) -> R {
    let result = context.with_state(|all: &mut Objects| all.threads.get_mut(&address).map(body));
    result.unwrap_or_else(|| context.stop_for_wrong(address, "a thread object"))
}

/// Returns the address of a process object.
pub fn process_object(nt: &Ntoskrnl, process: u32) -> u64 {
    let created = nt.clock().last();
    let mut state = nt.state();
    let processes = &mut state.get::<Objects>().processes;
    let object = processes.entry(process).or_insert_with(|| {
        let memory = Block::zeroed(SIZE);
        let header = DispatcherHeader::new(memory.address(), dispatcher_kind::PROCESS, SIZE, 0);
        // The kernel's own block is always writable.
        let _written = memory::write(memory.address(), &header);
        ProcessObject { memory, image: None, created, ended: None }
    });
    object.memory.address()
}

/// Returns the id of a process, and the counter's reading at its start, given its object.
pub fn process_of(context: &Context, object: u64) -> Option<(u32, i64)> {
    context.with_state(|all: &mut Objects| {
        let mut all = all.processes.iter();
        let (id, process) = all.find(|(_, process)| process.memory.address() == object)?;
        Some((*id, process.created))
    })
}

/// Records the path of a process's image.
pub fn note_image(context: &Context, process: u32, path: &str) {
    process_object(context.ntoskrnl(), process);
    if let Some(object) = context.state().get::<Objects>().processes.get_mut(&process) {
        object.image = Some(path.to_owned());
    }
}

/// Returns the path of a process's image, if a test specified one when it started the process.
pub fn image_of(context: &Context, process: u32) -> Option<String> {
    context.with_state(|all: &mut Objects| all.processes.get(&process)?.image.clone())
}

/// Returns whether a process with this id is running and known to drivers.
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

/// Records that a process has ended, or returns the status with which the process has ended.
pub fn process_end(context: &Context, process: u32, status: Option<NtStatus>) -> Option<NtStatus> {
    let mut state = context.state();
    let object = state.get::<Objects>().processes.get_mut(&process)?;
    object.ended = object.ended.or(status);
    object.ended
}

/// Returns the identity of the thread whose object is at this address.
pub fn identity_of(context: &Context, thread: u64) -> Option<Identity> {
    context.with_state(|all: &mut Objects| Some(all.threads.get(&thread)?.identity))
}

/// Returns the object of a running thread, given its id.
pub fn thread_by_id(context: &Context, id: u32) -> Option<u64> {
    if context.identity().thread == id {
        return Some(current(context).0);
    }
    let mut state = context.state();
    let mut threads = state.get::<Objects>().threads.iter();
    let found = threads.find(|(_, one)| one.identity.thread == id && !one.has_ended);
    found.map(|(address, _)| *address)
}

/// Attaches the current thread to a process, or detaches it from the last process.
pub fn attach(context: &Context, process: Option<u64>) -> bool {
    with_current(context, |thread| match process {
        Some(process) => {
            thread.attached.push(process);
            true
        }
        None => thread.attached.pop().is_some(),
    })
}

/// Returns the index of a thread's APC environment: 1 while the thread is attached to a process
/// other than its own, and otherwise 0.
pub fn environment(context: &Context, thread: u64) -> i8 {
    let process = with(context, thread, |thread| thread.identity.process);
    let own = process_object(context.ntoskrnl(), process);
    with(context, thread, |thread| thread.attached.iter().any(|process| *process != own)).into()
}

/// Returns whether the current thread is attached to a process other than its own.
pub fn is_attached(context: &Context) -> bool {
    environment(context, current(context).0) != 0
}

/// Returns the process in which the current thread runs.
pub fn current_process(context: &Context) -> At<KernelProcess> {
    let attached = with_current(context, |thread| thread.attached.last().copied());
    At::new(
        attached.unwrap_or_else(|| process_object(context.ntoskrnl(), context.identity().process)),
    )
}

/// Returns the id of the process in which the current thread runs.
pub fn current_process_id(context: &Context) -> u32 {
    let process = current_process(context);
    process_of(context, process.0).map_or_else(|| context.identity().process, |(id, _)| id)
}

/// Raises the priorities of threads whose waits have ended, until their next wait. On Windows, the boost
/// decays as the thread uses its quanta.
pub fn boost(state: &mut ModuleStates, threads: &[u64], increment: i32) {
    let all = &mut state.get::<Objects>().threads;
    for thread in threads {
        let Some(thread) = all.get_mut(thread) else {
            continue;
        };
        let [own, now] = &mut thread.priorities;
        if *own < LOW_REALTIME_PRIORITY {
            let boosted = thread.base_priority.saturating_add(increment);
            *now = boosted.min(LOW_REALTIME_PRIORITY - 1).max(*now);
        }
    }
}

/// Ends the current thread's boost.
pub fn end_boost(context: &Context) {
    with_current(context, |object| object.priorities = [object.priorities[0]; 2]);
}

/// Sets a thread's priority. The priority has no effect, because the threads of the stand-in kernel
/// take turns.
fn set_priority(context: &Context, thread: At<KernelThread>, priority: i32) -> i32 {
    if !(1..32).contains(&priority) {
        context.stop_for_misuse(&format!("with the priority {priority}; priorities are 1 to 31"));
    }
    let [_, before] =
        with(context, thread.0, |object| std::mem::replace(&mut object.priorities, [priority; 2]));
    before
}

/// Sets a thread's priority relative to its process's.
fn set_base_priority(context: &Context, thread: At<KernelThread>, increment: i32) -> i32 {
    let priority = NORMAL_PRIORITY.saturating_add(increment).clamp(1, LOW_REALTIME_PRIORITY - 1);
    with(context, thread.0, |object| {
        object.priorities = [priority; 2];
        std::mem::replace(&mut object.base_priority, priority) - NORMAL_PRIORITY
    })
}

fn query_priority(context: &Context, thread: At<KernelThread>) -> i32 {
    with(context, thread.0, |object| object.priorities[1])
}

/// Enters a critical or guarded region.
pub fn enter_region(context: &Context) {
    with_current(context, |object| object.regions = object.regions.saturating_add(1));
}

/// Enters a guarded region.
pub fn enter_guarded(context: &Context) {
    with_current(context, |object| {
        object.regions = object.regions.saturating_add(1);
        object.guarded = object.guarded.saturating_add(1);
    });
}

/// Leaves a critical region.
pub fn leave_region(context: &Context) {
    let left = with_current(context, |object| {
        let critical = object.regions.checked_sub(object.guarded)?;
        object.regions -= u32::from(critical > 0);
        (critical > 0).then_some(())
    });
    if left.is_none() {
        context.stop_for_misuse("without a critical region that its thread has entered");
    }
}

/// Leaves a guarded region.
pub fn leave_guarded(context: &Context) {
    let left = with_current(context, |object| {
        object.guarded = object.guarded.checked_sub(1)?;
        object.regions = object.regions.checked_sub(1)?;
        Some(())
    });
    if left.is_none() {
        context.stop_for_misuse("without a guarded region that its thread has entered");
    }
}

/// Returns whether the thread is in a critical or guarded region, including regions for mutexes
/// that the thread owns, regardless of the IRQL.
pub fn are_apcs_disabled(context: &Context) -> bool {
    disable_count(context) != 0
}

/// Returns the current thread's APC disable count (`CombinedApcDisable`): two 16-bit numbers. Each
/// critical region or owned mutex decrements the low number, and each guarded region the high
/// number.
pub fn disable_count(context: &Context) -> u32 {
    let (critical, guarded) = with_current(context, |object| {
        (object.regions.wrapping_sub(object.guarded).wrapping_add(object.mutexes), object.guarded)
    });
    critical.wrapping_neg() & 0xFFFF | guarded.wrapping_neg() << 16
}

/// Returns whether the current thread receives no APCs at all, not even special kernel APCs.
pub fn gets_no_calls(context: &Context) -> bool {
    let is_guarded = with_current(context, |object| object.guarded > 0);
    is_guarded || context.irql() >= APC
}

/// Records the status with which the current thread ends.
pub fn note_exit_status(context: &Context, status: NtStatus) {
    with_current(context, |object| object.exit_status = status);
}

/// Returns the status with which a thread has ended, or `STATUS_PENDING`.
pub fn exit_status(context: &Context, thread: At<KernelThread>) -> NtStatus {
    let ended = with(context, thread.0, |object| object.has_ended.then_some(object.exit_status));
    ended.unwrap_or(NtStatus::PENDING)
}

pub fn top_level_irp(context: &Context) -> At<Irp> {
    At::new(with_current(context, |object| object.top_level_irp))
}

/// Returns this kernel's processors, one bit each.
pub fn processors(context: &Context) -> u64 {
    u64::MAX >> (64 - u32::from(context.processors().clamp(1, 64)))
}

fn replace_affinity(context: &Context, affinity: u64) -> u64 {
    with_current(context, |object| std::mem::replace(&mut object.affinity, affinity))
}

/// Sets the thread's processor affinity. Threads of the stand-in kernel never move to another
/// processor.
fn set_affinity(context: &Context, affinity: u64) -> u64 {
    let affinity = affinity & processors(context);
    if affinity == 0 { 0 } else { replace_affinity(context, affinity) }
}

/// Sets the thread's processor affinity until [`revert_affinity_for_now`].
fn set_affinity_for_now(context: &Context, affinity: u64) {
    set_affinity(context, affinity);
}

fn revert_affinity_for_now(context: &Context) {
    replace_affinity(context, 0);
}

fn revert_affinity(context: &Context, affinity: u64) {
    replace_affinity(context, affinity & processors(context));
}

/// Sets the affinity to processors in a group. The only group is group 0.
fn set_group_affinity(context: &Context, affinity: At<GroupAffinity>, previous: At<GroupAffinity>) {
    let wanted: [u64; 2] = context.read(affinity.0);
    let mask = wanted[0] & processors(context);
    let before =
        if mask == 0 || wanted[1] & 0xFFFF != 0 { 0 } else { replace_affinity(context, mask) };
    context.write_optional(previous.0, &[before, 0]);
}

fn revert_group_affinity(context: &Context, previous: At<GroupAffinity>) {
    let wanted: [u64; 2] = context.read(previous.0);
    replace_affinity(context, wanted[0] & processors(context));
}
