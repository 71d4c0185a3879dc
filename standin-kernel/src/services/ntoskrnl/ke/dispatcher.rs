//! The objects that threads can wait for, and the waits.
//!
//! An object's state is in the driver's memory, in the fields that the headers declare. This module
//! stores the waits, oldest first. A wait ends when its object is signaled, even if the object is reset
//! before the waiting thread runs again.

use std::collections::HashSet;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{
    apcs,
    header::{header_of, kind},
    thread_objects,
};
use crate::{
    execution::coroutine::wait_until,
    ground::{
        NtStatus,
        abi::{DispatcherHeader, Mutant},
        irql::Irql,
        memory::{self, BadAddress},
        rule::Rule,
    },
    services::{
        managers::module_states::ModuleStates, ntoskrnl::context::Context,
        verifier::warnings::Verifier,
    },
};

/// Waits that have not ended, oldest first. Each wait is for a `T` and ends with an `R`.
pub struct Waits<T, R> {
    issued: u64,
    all: Vec<Wait<T, R>>,
}

/// A thread's wait.
pub struct Wait<T, R> {
    id: u64,
    pub value: T,
    /// The result, once the wait has ended.
    pub result: Option<R>,
}

impl<T, R> Default for Waits<T, R> {
    fn default() -> Self {
        Self { issued: 0, all: Vec::new() }
    }
}

impl<T: Send + 'static, R: Send + 'static> Waits<T, R> {
    /// Adds a wait, which may already have ended. Returns its id.
    pub fn begin(&mut self, value: T, result: Option<R>) -> u64 {
        self.issued += 1;
        self.all.push(Wait { id: self.issued, value, result });
        self.issued
    }

    /// Returns the waits without a result.
    pub fn unended(&mut self) -> impl DoubleEndedIterator<Item = &mut Wait<T, R>> {
        self.all.iter_mut().filter(|wait| wait.result.is_none())
    }

    /// Waits until a wait has its result, and removes the wait. Returns `None` after the timeout.
    /// Bugchecks if nothing can end the wait.
    pub fn finish(context: &Context, id: u64, timeout: Option<i64>) -> Option<R> {
        let deadline = timeout.map(|timeout| deadline(context, timeout));
        let has_result = || {
            apcs::deliver(context);
            context.with_state(|waits: &mut Self| {
                waits.all.iter().any(|wait| wait.id == id && wait.result.is_some())
            })
        };
        wait_until(context, deadline, has_result);
        let ended = context.with_state(|waits: &mut Self| {
            waits.all.extract_if(.., |wait| wait.id == id).next().and_then(|wait| wait.result)
        });
        if ended.is_none() && deadline.is_none() {
            context.stop_call(
                Rule::Deadlock,
                "and would wait forever: no remaining work can signal the object",
            );
        }
        ended
    }
}

/// The objects of a wait.
struct Objects {
    addresses: Vec<u64>,
    /// Set if every object must be signaled.
    all: bool,
    /// The thread object of the waiting thread, which becomes the owner of acquired mutexes.
    thread: u64,
}

type ObjectWaits = Waits<Objects, NtStatus>;

/// Changes an object's state and ends the waits that the change satisfies. Returns the previous state.
pub fn set_state(context: &Context, object: u64, state: i32) -> i32 {
    set_state_boosting(context, object, state, 0)
}

/// Changes an object's state, and adds `increment` to the priorities of the threads whose waits
/// end. See [`set_state`].
pub fn set_state_boosting(context: &Context, object: u64, state: i32, increment: i32) -> i32 {
    change(context, object, increment, |header: &mut DispatcherHeader| {
        std::mem::replace(&mut header.signal_state, state)
    })
}

/// Changes an object, whose structure begins with a header, and ends the waits that the change
/// satisfies. The priorities of the waiting threads rise by `increment`. Nothing else changes the
/// object during the call.
pub fn change<T, R>(
    context: &Context,
    object: u64,
    increment: i32,
    change: impl FnOnce(&mut T) -> R,
) -> R
where
    T: FromBytes + IntoBytes + Immutable,
{
    context.atomically(|state| {
        let mut value: T = memory::read(object)?;
        let result = change(&mut value);
        memory::write(object, &value)?;
        satisfy_in(state, increment);
        Ok(result)
    })
}

/// Signals an object and ends the waits that are now satisfied, while the modules' state is locked.
pub fn signal_in(state: &mut ModuleStates, object: u64) -> Result<(), BadAddress> {
    let mut header: DispatcherHeader = memory::read(object)?;
    header.signal_state = 1;
    memory::write(object, &header)?;
    satisfy_in(state, 0);
    Ok(())
}

/// Ends the waits whose objects are signaled, oldest first.
pub fn satisfy(context: &Context) {
    satisfy_in(&mut context.state(), 0);
}

fn satisfy_in(state: &mut ModuleStates, increment: i32) {
    let ended = thread_objects::ended(state);
    let (mut owners, mut woken) = (Vec::new(), Vec::new());
    for wait in state.get::<ObjectWaits>().unended() {
        wait.result = acquire(&wait.value, &ended, &mut owners);
        if wait.result.is_some() {
            woken.push(wait.value.thread);
        }
    }
    thread_objects::note_mutexes(state, &owners);
    thread_objects::boost(state, &woken, increment);
}

/// Acquires objects for a thread if they are signaled, while the modules' state is locked. `ended`
/// contains the threads that have ended. Adds the thread to `owners` for each mutex that puts it in
/// a critical region. Returns the status of the wait. An object whose memory is no longer
/// accessible is not signaled.
fn acquire(objects: &Objects, ended: &HashSet<u64>, owners: &mut Vec<u64>) -> Option<NtStatus> {
    let Objects { addresses, all, thread } = objects;
    let is_signaled = |object: &u64| ended.contains(object) || is_signaled(*object, *thread);
    if *all {
        if !addresses.iter().all(is_signaled) {
            return None;
        }
        let abandoned = addresses.iter().filter(|object| take(**object, *thread, owners)).count();
        return Some(if abandoned == 0 { NtStatus::SUCCESS } else { ABANDONED });
    }
    let at = addresses.iter().position(is_signaled)?;
    let base = if take(*addresses.get(at)?, *thread, owners) { ABANDONED.bits() } else { 0 };
    Some(NtStatus::from_bits(base + u32::try_from(at).unwrap_or(0)))
}

/// `STATUS_ABANDONED`: the mutex's owner ended without releasing it.
const ABANDONED: NtStatus = NtStatus::from_bits(0x80);

/// `STATUS_MUTANT_LIMIT_EXCEEDED`.
const MUTANT_LIMIT_EXCEEDED: NtStatus = NtStatus::from_bits(0xC000_0191);

/// Returns whether an object is a mutex that its owner cannot acquire again.
fn is_at_limit(object: u64, thread: u64) -> bool {
    memory::read::<Mutant>(object).is_ok_and(|mutant| {
        let header = mutant.header;
        header.kind == kind::MUTANT
            && header.signal_state == i32::MIN
            && mutant.owner_thread == thread
    })
}

fn is_signaled(object: u64, thread: u64) -> bool {
    let Ok(header) = memory::read::<DispatcherHeader>(object) else {
        return false;
    };
    if header.signal_state > 0 {
        return true;
    }
    // The owner of a mutex can acquire it again.
    header.kind == kind::MUTANT
        && memory::read::<Mutant>(object).is_ok_and(|mutant| mutant.owner_thread == thread)
}

/// Acquires a signaled object. Adds the thread to `owners` if the object is a mutex that puts the
/// thread in a critical region. Returns whether the object is a mutex whose owner has ended.
fn take(object: u64, thread: u64, owners: &mut Vec<u64>) -> bool {
    let Ok(mut header) = memory::read::<DispatcherHeader>(object) else {
        return false;
    };
    match header.kind {
        kind::SYNCHRONIZATION_EVENT | kind::SYNCHRONIZATION_TIMER => header.signal_state = 0,
        kind::SEMAPHORE => header.signal_state = header.signal_state.saturating_sub(1),
        kind::MUTANT => {
            let Ok(mut mutant) = memory::read::<Mutant>(object) else {
                return false;
            };
            // A wait for a mutex at its limit has already failed.
            mutant.header.signal_state = mutant.header.signal_state.saturating_sub(1);
            mutant.owner_thread = thread;
            if mutant.header.signal_state == 0 && mutant.apc_disable != 0 {
                owners.push(thread);
            }
            let was_abandoned = std::mem::take(&mut mutant.abandoned) != 0;
            // The memory was readable, and an object that a driver initialized is writable.
            let _written = memory::write(object, &mutant);
            return was_abandoned;
        }
        _ => return false,
    }
    // The memory is writable, as above.
    let _written = memory::write(object, &header);
    false
}

/// The object kinds that [`wait`] accepts.
const WAITABLE: &[u8] = &[
    kind::NOTIFICATION_EVENT,
    kind::SYNCHRONIZATION_EVENT,
    kind::MUTANT,
    kind::PROCESS,
    kind::SEMAPHORE,
    kind::THREAD,
    kind::NOTIFICATION_TIMER,
    kind::SYNCHRONIZATION_TIMER,
];

/// Waits for one or all objects. The timeout is in units of 100 ns: a negative value is relative to
/// now, a positive value counts from 1601, with 0 the call does not wait, and `None` never expires.
pub fn wait(context: &Context, addresses: Vec<u64>, all: bool, timeout: Option<i64>) -> NtStatus {
    if timeout != Some(0) {
        context.require_irql(Irql::APC_LEVEL, "to wait");
    }
    for object in &addresses {
        header_of(context, *object, WAITABLE);
    }
    let objects = Objects { addresses, all, thread: thread_objects::current(context).0 };
    if objects.addresses.iter().any(|object| is_at_limit(*object, objects.thread)) {
        context.raise_exception(MUTANT_LIMIT_EXCEEDED, "for a mutex that is acquired too often");
        return MUTANT_LIMIT_EXCEEDED;
    }
    let acquire_now = |state: &mut ModuleStates| {
        let mut owners = Vec::new();
        let status = acquire(&objects, &thread_objects::ended(state), &mut owners);
        thread_objects::note_mutexes(state, &owners);
        status
    };
    let acquired = acquire_now(&mut context.state());
    if let Some(status) = acquired {
        return status;
    }
    if timeout == Some(0) {
        return NtStatus::TIMEOUT;
    }
    check_may_wait(context);
    thread_objects::end_boost(context);
    let id = {
        let mut state = context.state();
        // Another thread may have signaled an object in the meantime without ending a wait.
        let result = acquire_now(&mut state);
        state.get::<ObjectWaits>().begin(objects, result)
    };
    ObjectWaits::finish(context, id, timeout).unwrap_or(NtStatus::TIMEOUT)
}

/// Bugchecks in an enable callback. Enable callbacks must not wait.
pub fn check_may_wait(context: &Context) {
    if Verifier::is_in_enable_callback(context) {
        context.stop_call(
            Rule::EnableCallbackBlocks,
            "inside an enable callback, which must not wait",
        );
    }
}

/// Returns the counter's reading at which a timeout ends.
pub fn deadline(context: &Context, timeout: i64) -> i64 {
    let clock = context.clock();
    clock.due(timeout).unwrap_or_else(|| clock.reading_of(timeout))
}
