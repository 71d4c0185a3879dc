//! Presentation locks: the locks of drivers, devices and queues. If the driver chose a
//! synchronization scope, the framework holds the lock while it calls the driver's callbacks.

use std::{collections::HashMap, thread::ThreadId};

use super::wait;
use crate::{
    execution::{
        kinds::AnyObject,
        routine::{Handle, routine},
    },
    ground::{NtResult, NtStatus, irql::Irql, rule::Rule},
    services::kmdf::{
        binding::DriverData,
        state::{
            device::{DeviceData, device_of},
            file::FileData,
            framework::{Context, Entries, Framework, Violation},
            queue::QueueData,
        },
    },
};

pub const ENTRIES: Entries =
    &[routine("WdfObjectAcquireLock", acquire_lock), routine("WdfObjectReleaseLock", release_lock)];

/// `WDF_SYNCHRONIZATION_SCOPE`.
const INHERIT: u32 = 1;
const DEVICE: u32 = 2;
const QUEUE: u32 = 3;
const NONE: u32 = 4;

/// A presentation lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The driver, device or queue to which the lock belongs.
    owner: u64,
    /// Set if the lock is a mutex, which does not change the IRQL, rather than a spin lock.
    is_passive: bool,
}

/// The acquired locks, indexed by owner. Each value is the thread and its previous IRQL.
#[derive(Default)]
struct Acquired(HashMap<u64, (ThreadId, Irql)>);

/// Returns the synchronization scope of an object, with inheritance resolved.
fn scope_of(framework: &mut Framework, object: u64) -> u32 {
    let own = framework.objects.get(&object).map_or(0, |object| object.synchronization_scope);
    if own > INHERIT {
        own
    } else if framework.get::<DriverData>(object).is_ok()
        || (own != INHERIT && framework.get::<FileData>(object).is_ok())
    {
        // Files without attributes are not synchronized.
        NONE
    } else if framework.get::<DeviceData>(object).is_ok() {
        let driver = framework.ancestor::<DriverData>(object);
        driver.map_or(NONE, |driver| scope_of(framework, driver))
    } else {
        let device = framework.ancestor::<DeviceData>(object);
        device.map_or(NONE, |device| scope_of(framework, device))
    }
}

/// Returns the presentation lock of a driver, device, queue or file. A file has a lock only if it
/// is synchronized with its device.
pub fn lock_of(context: &Context, object: u64) -> Option<Lock> {
    let mut framework = context.framework();
    let framework = &mut *framework;
    let is_driver = framework.get::<DriverData>(object).is_ok();
    let own = is_driver || framework.get::<DeviceData>(object).is_ok();
    let is_queue = framework.get::<QueueData>(object).is_ok();
    let is_of_device = scope_of(framework, object) == DEVICE;
    let owner = if own || (is_queue && !is_of_device) {
        object
    } else if is_queue || (framework.get::<FileData>(object).is_ok() && is_of_device) {
        framework.ancestor::<DeviceData>(object)?
    } else {
        return None;
    };
    Some(Lock { owner, is_passive: is_driver || framework.is_passive(owner) })
}

/// Returns the lock that the framework holds while it calls an object's callbacks, if the driver
/// chose synchronization.
pub fn automatic(context: &Context, object: u64) -> Option<Lock> {
    let scope = scope_of(&mut context.framework(), object);
    (scope == DEVICE || scope == QUEUE).then(|| lock_of(context, object)).flatten()
}

/// Returns whether files with these attributes can have the requested synchronization.
pub fn check_files(context: &Context, device: u64) -> NtResult {
    let attributes = context.with::<DeviceData, _>(device, |device| device.file_config());
    let Some((_, Some(attributes))) = attributes else {
        return Ok(());
    };
    let mut framework = context.framework();
    let scope = match attributes.synchronization_scope {
        INHERIT => scope_of(&mut framework, device),
        own => own,
    };
    // A device's spin lock cannot be held during file callbacks, which are called at PASSIVE_LEVEL.
    let is_wrong = scope == QUEUE || (scope == DEVICE && !framework.is_passive(device));
    if is_wrong { Err(NtStatus::INVALID_DEVICE_REQUEST) } else { Ok(()) }
}

/// Returns whether a queue can have the synchronization that its attributes request. A device's lock
/// supports only one execution level.
pub fn check_queue(context: &Context, queue: u64) -> NtResult {
    let Some(device) = device_of(context, queue) else {
        return Ok(());
    };
    let mut framework = context.framework();
    let is_wrong = scope_of(&mut framework, queue) == DEVICE
        && framework.is_passive(queue) != framework.is_passive(device);
    if is_wrong { Err(NtStatus::INVALID_PARAMETER) } else { Ok(()) }
}

/// Returns the lock that serializes a timer, DPC, work item or interrupt with its parent's callbacks.
/// `is_passive` is set if the object's callback runs at `PASSIVE_LEVEL`.
///
/// # Errors
///  Returns an error if the parent has no device as its ancestor, or if the parent's callbacks run
/// at a different execution level.
pub fn serialization(
    context: &Context,
    parent: u64,
    is_wanted: bool,
    is_passive: bool,
) -> NtResult<Option<Lock>> {
    if device_of(context, parent).is_none() {
        return Err(NtStatus::INVALID_DEVICE_REQUEST);
    }
    if !is_wanted {
        return Ok(None);
    }
    let synchronized = nearest(&mut context.framework(), parent);
    let lock = synchronized.and_then(|object| automatic(context, object));
    match lock {
        Some(lock) if lock.is_passive != is_passive => {
            Err(NtStatus::WDF_INCOMPATIBLE_EXECUTION_LEVEL)
        }
        lock => Ok(lock),
    }
}

/// Returns the object itself, or its nearest ancestor whose callbacks can be synchronized.
fn nearest(framework: &mut Framework, object: u64) -> Option<u64> {
    let mut at = object;
    loop {
        let is_it = framework.get::<QueueData>(at).is_ok()
            || framework.get::<DeviceData>(at).is_ok()
            || framework.get::<FileData>(at).is_ok();
        if is_it {
            return Some(at);
        }
        at = framework.parent(at)?;
    }
}

/// Returns whether the current thread holds a lock.
pub fn is_owner(context: &Context, lock: Lock) -> bool {
    let this = context.id();
    let mut framework = context.framework();
    let acquired = &framework.part::<Acquired>().0;
    acquired.get(&lock.owner).is_some_and(|(owner, _)| *owner == this)
}

/// Runs `body` with a lock held, if `lock` is not `None`.
pub fn locked<R>(context: &Context, lock: Option<Lock>, body: impl FnOnce() -> R) -> R {
    let Some(lock) = lock else {
        return body();
    };
    acquire(context, lock);
    let result = body();
    release(context, lock);
    result
}

/// Calls a callback for an object, holding the lock that the driver chose for such callbacks.
pub fn call<const N: usize>(
    context: &Context,
    object: u64,
    what: &str,
    callback: u64,
    arguments: [u64; N],
) -> u64 {
    let lock = automatic(context, object);
    locked(context, lock, || context.call_driver(what, callback, arguments))
}

fn acquire(context: &Context, lock: Lock) {
    let this = context.id();
    if is_owner(context, lock) {
        let what = "by a thread that already holds the presentation lock";
        context.violate(Violation::RecursiveLock, [lock.owner, 0], what);
    }
    let take = |context: &Context, before: Irql| {
        let mut framework = context.framework();
        let acquired = &mut framework.part::<Acquired>().0;
        let is_free = !acquired.contains_key(&lock.owner);
        if is_free {
            acquired.insert(lock.owner, (this, before));
        }
        is_free
    };
    let before = context.irql();
    if !lock.is_passive {
        context.raise_irql(Irql::DISPATCH_LEVEL);
        context.wait_for("a presentation lock that is never released", || {
            take(context, before).then_some(())
        });
        return;
    }
    if before > Irql::PASSIVE_LEVEL {
        context.stop(
            Rule::IrqlTooHigh,
            format!(
                "{} was called at {before} from {} for the presentation lock of an object whose \
                 callbacks are called at PASSIVE_LEVEL; the highest IRQL for this lock is {}",
                context.call().name,
                context.caller(),
                Irql::PASSIVE_LEVEL
            ),
        );
    }
    if !wait::wait_until(context, None, |context| take(context, before)) {
        context.stop_call(
            Rule::Deadlock,
            "and would wait forever for a presentation lock that is never released",
        );
    }
}

fn release(context: &Context, lock: Lock) {
    let this = context.id();
    let released = {
        let mut framework = context.framework();
        let acquired = &mut framework.part::<Acquired>().0;
        match acquired.get(&lock.owner) {
            Some((owner, _)) if *owner == this => acquired.remove(&lock.owner),
            _ => None,
        }
    };
    let Some((_, before)) = released else {
        context.stop_call(
            Rule::IrqlNotLowered,
            "for a presentation lock that its caller does not hold",
        );
    };
    if !lock.is_passive {
        context.lower_irql(before);
    }
}

/// Returns an object's lock to the driver. Bugchecks if the object has no lock.
fn lock_for_driver(context: &Context, object: u64) -> Lock {
    let kind = context.with_object(object, |object| object.data.name());
    lock_of(context, object).unwrap_or_else(|| {
        let what = format!("with 0x{object:016X}, which is a {kind} without a presentation lock");
        context.violate(Violation::Lock, [object, 0], &what)
    })
}

fn acquire_lock(context: &Context, object: Handle<AnyObject>) {
    let lock = lock_for_driver(context, object.0);
    acquire(context, lock);
}

fn release_lock(context: &Context, object: Handle<AnyObject>) {
    let lock = lock_for_driver(context, object.0);
    release(context, lock);
}
