//! Resources (`ERESOURCE`): recursive locks that one thread owns exclusively or that several
//! threads share.

use std::collections::BTreeMap;

use zerocopy::FromZeros;

use crate::{
    execution::{
        coroutine::wait_until,
        identity::Identity,
        routine::{At, Memory, routine},
    },
    ground::{
        NtStatus,
        abi::ResourceLock,
        irql::Irql,
        memory::{self, BadAddress},
        rule::Rule,
    },
    services::{
        managers::module_states::ModuleStates,
        ntoskrnl::{
            context::{Context, Entries},
            ke::thread_objects,
        },
    },
};

const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    routine("ExInitializeResourceLite", initialize),
    routine("ExReinitializeResourceLite", initialize_again),
    routine("ExDeleteResourceLite", delete),
    routine("ExAcquireResourceExclusiveLite", acquire_exclusive),
    routine("ExAcquireResourceSharedLite", acquire_shared::<FAIR>),
    routine("ExAcquireSharedStarveExclusive", acquire_shared::<STARVE>),
    routine("ExAcquireSharedWaitForExclusive", acquire_shared::<WAIT>),
    routine("ExEnterCriticalRegionAndAcquireResourceExclusive", enter_exclusive),
    routine("ExEnterCriticalRegionAndAcquireResourceShared", enter_shared::<FAIR>),
    routine("ExEnterCriticalRegionAndAcquireSharedWaitForExclusive", enter_shared::<WAIT>),
    routine("ExReleaseResourceLite", release),
    routine("ExReleaseResourceForThreadLite", release_for),
    routine("ExSetResourceOwnerPointer", set_owner),
    routine("ExSetResourceOwnerPointerEx", set_owner_with_flags),
    routine("ExReleaseResourceAndLeaveCriticalRegion", release_and_leave),
    routine("ExConvertExclusiveToSharedLite", share),
    routine("ExIsResourceAcquiredExclusiveLite", is_exclusive),
    routine("ExIsResourceAcquiredSharedLite", times_acquired),
    routine("ExGetExclusiveWaiterCount", exclusive_waiters),
    routine("ExGetSharedWaiterCount", shared_waiters),
    routine("ExDisableResourceBoostLite", disable_boost),
];

/// Threads that wait for exclusive access come before threads that request shared access, unless
/// the latter already own the resource.
const FAIR: u8 = 0;
/// Threads that request shared access never wait for threads that are waiting for exclusive access.
const STARVE: u8 = 1;
/// Threads that request shared access always wait for threads that are waiting for exclusive access.
const WAIT: u8 = 2;

/// `ResourceOwnedExclusive`.
const OWNED_EXCLUSIVE: u16 = 0x80;

#[derive(Default)]
struct Resource {
    /// Set if one thread owns the resource exclusively.
    is_exclusive: bool,
    /// The number of times that each thread has acquired the resource.
    owners: BTreeMap<u64, u32>,
    /// The threads that wait for the resource, or that have received it but not run since, oldest
    /// first.
    waiters: Vec<Waiter>,
}

/// A thread that waits for a resource.
struct Waiter {
    thread: u64,
    /// Set if the thread requests exclusive access.
    is_exclusive: bool,
    /// Set once the releasing thread has handed the resource to this thread.
    has_it: bool,
}

impl Resource {
    /// Returns the number of waiting threads.
    fn waiting(&self, is_exclusive: bool) -> u32 {
        let all = self.waiters.iter();
        let waiting = all.filter(|one| !one.has_it && one.is_exclusive == is_exclusive);
        u32::try_from(waiting.count()).unwrap_or(u32::MAX)
    }

    /// Hands a free or shared resource to waiting threads: to all threads that request shared
    /// access, or to the first thread that requests exclusive access.
    fn hand_over(&mut self, to_exclusive: bool) {
        let wanted = |one: &&mut Waiter| !one.has_it && one.is_exclusive == to_exclusive;
        let limit = if to_exclusive { 1 } else { usize::MAX };
        for one in self.waiters.iter_mut().filter(wanted).take(limit) {
            one.has_it = true;
            self.is_exclusive = to_exclusive;
            let times = self.owners.entry(one.thread).or_default();
            *times = times.saturating_add(1);
        }
    }

    fn times(&self, thread: u64) -> u32 {
        self.owners.get(&thread).copied().unwrap_or(0)
    }

    /// Acquires the resource exclusively, if that is possible now.
    fn take_exclusive(&mut self, thread: u64) -> bool {
        let is_own = self.is_exclusive && self.times(thread) > 0;
        if !self.owners.is_empty() && !is_own {
            return false;
        }
        self.is_exclusive = true;
        let times = self.owners.entry(thread).or_default();
        *times = times.saturating_add(1);
        true
    }

    /// Acquires shared access, if that is possible now.
    fn take_shared(&mut self, thread: u64, mode: u8) -> bool {
        let is_own = self.times(thread) > 0;
        let must_wait = self.waiting(true) > 0
            && !self.is_exclusive
            && match mode {
                STARVE => false,
                FAIR => !is_own,
                _ => true,
            };
        if must_wait || (self.is_exclusive && !is_own) {
            return false;
        }
        let times = self.owners.entry(thread).or_default();
        *times = times.saturating_add(1);
        true
    }

    /// Releases the resource for a thread. Returns whether the thread owned it.
    fn release(&mut self, thread: u64) -> bool {
        let Some(times) = self.owners.get_mut(&thread) else {
            return false;
        };
        *times -= 1;
        if *times == 0 {
            self.owners.remove(&thread);
        }
        if self.owners.is_empty() {
            // Shared and exclusive owners alternate.
            let was_exclusive = std::mem::take(&mut self.is_exclusive);
            let to_exclusive =
                self.waiting(true) > 0 && !(was_exclusive && self.waiting(false) > 0);
            self.hand_over(to_exclusive);
        }
        true
    }
}

/// The resources, by address.
#[derive(Default)]
struct Resources(BTreeMap<u64, Resource>);

/// Creates a resource at an address. Returns whether there was none.
pub fn create(state: &mut ModuleStates, resource: u64) -> Result<bool, BadAddress> {
    let all = &mut state.get::<Resources>().0;
    let is_new = !all.contains_key(&resource);
    if is_new {
        let new = Resource::default();
        memory::write(resource, &fields(resource, &new))?;
        all.insert(resource, new);
    }
    Ok(is_new)
}

fn initialize(context: &Context, resource: At<ResourceLock>) -> NtStatus {
    if !context.atomically(|state| create(state, resource.0)) {
        context.stop_for_misuse("for a resource that was already initialized and not deleted");
    }
    NtStatus::SUCCESS
}

/// Returns the fields that describe the ownership of a resource.
fn fields(resource: u64, value: &Resource) -> ResourceLock {
    let flag = if value.is_exclusive { OWNED_EXCLUSIVE } else { 0 };
    ResourceLock {
        system_resources_list: [resource; 2],
        active_count: i16::try_from(value.owners.len()).unwrap_or(i16::MAX),
        flag,
        active_entries: u32::try_from(value.owners.len()).unwrap_or(u32::MAX),
        number_of_shared_waiters: value.waiting(false),
        number_of_exclusive_waiters: value.waiting(true),
        ..ResourceLock::new_zeroed()
    }
}

/// Runs `body` on a resource and then stores its ownership, atomically: no other thread changes the
/// resource during the call. Bugchecks if the resource was not initialized.
fn with<R>(context: &Context, resource: u64, body: impl FnOnce(&mut Resource) -> R) -> R {
    let result = context.atomically(|state| {
        let Some(one) = state.get::<Resources>().0.get_mut(&resource) else {
            return Ok(None);
        };
        let result = body(one);
        memory::write(resource, &fields(resource, one))?;
        Ok(Some(result))
    });
    result.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "with the resource at 0x{resource:016X}, which was not initialized or was deleted"
        ))
    })
}

fn must_be_free(context: &Context, resource: u64) {
    let owners = with(context, resource, |one| one.owners.len());
    if owners > 0 {
        context.stop_for_misuse(&format!("for a resource that {owners} threads have acquired"));
    }
}

fn initialize_again(context: &Context, resource: At<ResourceLock>) -> NtStatus {
    must_be_free(context, resource.0);
    NtStatus::SUCCESS
}

fn delete(context: &Context, resource: At<ResourceLock>) -> NtStatus {
    must_be_free(context, resource.0);
    context.state().get::<Resources>().0.remove(&resource.0);
    NtStatus::SUCCESS
}

/// Bugchecks if a thread could be suspended while it owns the resource, as Driver Verifier does. Threads
/// of the system process are never suspended.
fn must_be_in_region(context: &Context) {
    let is_system = context.identity().process == Identity::SYSTEM.process;
    if !is_system && context.irql() < APC && !thread_objects::are_apcs_disabled(context) {
        context.stop_for_misuse(
            "outside a critical region; call KeEnterCriticalRegion first, so that the thread is \
             not suspended while it owns the resource",
        );
    }
}

fn acquire_exclusive(context: &Context, resource: At<ResourceLock>, wait: bool) -> bool {
    must_be_in_region(context);
    let thread = thread_objects::current(context);
    let try_take = || with(context, resource.0, |one| one.take_exclusive(thread.0));
    if try_take() {
        return true;
    }
    if !wait {
        return false;
    }
    if with(context, resource.0, |one| one.times(thread.0)) > 0 {
        context.stop_call(
            Rule::Deadlock,
            "for a resource that its caller already shares: it would wait for \
                 itself",
        );
    }
    wait_for(context, resource.0, thread.0, true, |one| one.take_exclusive(thread.0));
    true
}

fn acquire_shared<const MODE: u8>(
    context: &Context,
    resource: At<ResourceLock>,
    wait: bool,
) -> bool {
    must_be_in_region(context);
    let thread = thread_objects::current(context);
    let try_take = || with(context, resource.0, |one| one.take_shared(thread.0, MODE));
    if try_take() {
        return true;
    }
    if !wait {
        return false;
    }
    wait_for(context, resource.0, thread.0, false, |one| one.take_shared(thread.0, MODE));
    true
}

/// Waits until a releasing thread hands the resource to this thread, or until `take` succeeds,
/// because the resource may have been released before the wait. Bugchecks if nothing can release
/// it.
fn wait_for(
    context: &Context,
    resource: u64,
    thread: u64,
    is_exclusive: bool,
    take: impl FnOnce(&mut Resource) -> bool,
) {
    with(context, resource, |one| {
        let has_it = take(one);
        one.waiters.push(Waiter { thread, is_exclusive, has_it });
    });
    // A thread has at most one wait.
    let has_it = |one: &Waiter| one.thread == thread && one.has_it;
    let is_given = || with(context, resource, |one| one.waiters.iter().any(has_it));
    let is_taken = wait_until(context, None, is_given);
    with(context, resource, |one| one.waiters.retain(|one| one.thread != thread));
    if !is_taken {
        context.stop_call(
            Rule::Deadlock,
            "and would wait forever for a resource that is never released",
        );
    }
}

/// Enters a critical region and acquires a resource. Returns the owner value for the current thread.
fn enter_exclusive(context: &Context, resource: At<ResourceLock>) -> Memory {
    thread_objects::enter_region(context);
    acquire_exclusive(context, resource, true);
    At::NULL
}

fn enter_shared<const MODE: u8>(context: &Context, resource: At<ResourceLock>) -> Memory {
    thread_objects::enter_region(context);
    acquire_shared::<MODE>(context, resource, true);
    At::NULL
}

fn release(context: &Context, resource: At<ResourceLock>) {
    let thread = thread_objects::current(context).0;
    release_for(context, resource, thread);
}

fn release_for(context: &Context, resource: At<ResourceLock>, thread: u64) {
    if !with(context, resource.0, |one| one.release(thread)) {
        context.stop_for_misuse("for a resource that the thread has not acquired");
    }
}

/// Makes an address the owner in place of the current thread. Two set bits tell it from a thread's.
fn set_owner(context: &Context, resource: At<ResourceLock>, owner: Memory) {
    set_owner_with_flags(context, resource, owner, 0);
}

fn set_owner_with_flags(context: &Context, resource: At<ResourceLock>, owner: Memory, _flags: u32) {
    if owner.0 & 3 != 3 {
        context.stop_for_misuse("with an owner whose two lowest bits are not set");
    }
    let thread = thread_objects::current(context).0;
    let is_own = with(context, resource.0, |one| {
        let times = one.owners.remove(&thread);
        let all = one.owners.entry(owner.0);
        times.map(|times| *all.or_default() += times).is_some()
    });
    if !is_own {
        context.stop_for_misuse("for a resource that the thread has not acquired");
    }
}

fn release_and_leave(context: &Context, resource: At<ResourceLock>) {
    release(context, resource);
    thread_objects::leave_region(context);
}

/// Converts the thread's exclusive access to shared access.
fn share(context: &Context, resource: At<ResourceLock>) {
    let thread = thread_objects::current(context);
    let is_own = with(context, resource.0, |one| {
        let is_own = one.is_exclusive && one.times(thread.0) > 0;
        if is_own {
            one.is_exclusive = false;
            one.hand_over(false);
        }
        is_own
    });
    if !is_own {
        context.stop_for_misuse("for a resource that its caller has not acquired exclusively");
    }
}

fn is_exclusive(context: &Context, resource: At<ResourceLock>) -> bool {
    let thread = thread_objects::current(context);
    with(context, resource.0, |one| one.is_exclusive && one.times(thread.0) > 0)
}

/// Returns the number of times that the current thread has acquired a resource, shared or exclusively.
fn times_acquired(context: &Context, resource: At<ResourceLock>) -> u32 {
    let thread = thread_objects::current(context);
    with(context, resource.0, |one| one.times(thread.0))
}

fn exclusive_waiters(context: &Context, resource: At<ResourceLock>) -> u32 {
    with(context, resource.0, |one| one.waiting(true))
}

fn shared_waiters(context: &Context, resource: At<ResourceLock>) -> u32 {
    with(context, resource.0, |one| one.waiting(false))
}

/// Has no effect, because threads of this kernel receive no priority boost while they own a
/// resource.
fn disable_boost(context: &Context, resource: At<ResourceLock>) {
    with(context, resource.0, |_| ());
}

/// Removes the resources in memory that is being freed, and returns their number.
pub fn forget_inside(context: &Context, is_inside: impl Fn(u64) -> bool) -> usize {
    context
        .with_state(|Resources(all)| all.extract_if(.., |resource, _| is_inside(*resource)).count())
}

#[cfg(test)]
mod tests {
    use super::{FAIR, Resource, STARVE, WAIT, Waiter};

    #[test]
    fn one_thread_or_several_have_a_resource() {
        let mut resource = Resource::default();
        assert!(resource.take_shared(1, FAIR));
        assert!(resource.take_shared(2, FAIR));
        assert!(!resource.take_exclusive(1));
        assert!(resource.release(1));
        assert!(!resource.release(1));
        assert!(resource.release(2));
        assert!(resource.take_exclusive(1));
        // The owner can acquire the resource again in either mode; other threads cannot.
        assert!(resource.take_exclusive(1));
        assert!(resource.take_shared(1, FAIR));
        assert_eq!(resource.times(1), 3);
        assert!(!resource.take_shared(2, STARVE));
        for _ in 0..3 {
            assert!(resource.release(1));
        }
        assert!(resource.take_shared(2, FAIR));
        assert!(!resource.is_exclusive);
    }

    #[test]
    fn who_shares_a_resource_waits_for_those_who_want_it_alone() {
        let mut resource = Resource::default();
        assert!(resource.take_shared(1, FAIR));
        resource.waiters.push(Waiter { thread: 3, is_exclusive: true, has_it: false });
        assert!(!resource.take_shared(2, FAIR));
        assert!(resource.take_shared(2, STARVE));
        assert!(resource.take_shared(1, FAIR));
        assert!(!resource.take_shared(1, WAIT));
        // The last thread that releases the resource hands it to the waiting thread.
        assert!(resource.release(1) && resource.release(1));
        assert_eq!(resource.waiting(true), 1);
        assert!(resource.release(2));
        assert_eq!((resource.waiting(true), resource.times(3)), (0, 1));
        assert!(!resource.take_shared(1, STARVE));
    }
}
