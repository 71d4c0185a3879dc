//! The activity ids of the I/O manager: those that a driver attaches to requests, and takes over from
//! a request to the thread that serves it.

use etl_file::Guid;

use super::service::Context;
use crate::{
    execution::routine::{Export, Routine},
    ground::{abi::Irp, irql::Irql, rule::Rule, status::NtStatus},
};

/// Returns the exports. Their pages allow every IRQL, that of `IoSetActivityIdIrp` only with an id.
pub fn exports() -> Vec<Export<Context>> {
    const HIGH: Irql = Irql::HIGH_LEVEL;
    vec![
        ("IoClearActivityIdThread", HIGH, Routine::One(clear_thread)),
        ("IoGetActivityIdIrp", HIGH, Routine::Two(get_request)),
        ("IoGetActivityIdThread", HIGH, Routine::Zero(get_thread)),
        ("IoPropagateActivityIdToThread", HIGH, Routine::Three(propagate)),
        ("IoSetActivityIdIrp", HIGH, Routine::Two(set_request)),
        ("IoSetActivityIdThread", HIGH, Routine::One(set_thread)),
        ("IoTransferActivityId", HIGH, Routine::Two(transfer)),
    ]
}

/// The bit of a request's `AllocationFlags` that says that it has an activity id. A request that is
/// initialized again, or other memory at its address, does not have it.
const HAS_ACTIVITY: u8 = 0x80;
/// `IO_TYPE_IRP`.
const REQUEST: i16 = 6;

/// Reads a request. Bugchecks if there is none at the address.
fn request(context: &Context, irp: u64) -> Irp {
    let value: Irp = context.read(irp);
    if value.kind != REQUEST {
        context.stop(
            Rule::ObjectMisused,
            format!(
                "{} was called from {} with 0x{irp:016X}, which is not a request",
                context.call().name,
                context.caller()
            ),
        );
    }
    value
}

/// Returns the activity id of a request.
fn activity_of(context: &Context, irp: u64) -> Option<Guid> {
    let value = request(context, irp);
    let has_activity = value.allocation_flags & HAS_ACTIVITY != 0;
    has_activity.then(|| context.activities().of_request(irp)).flatten()
}

fn get_request(context: &Context, irp: u64, activity: u64) -> u64 {
    let Some(found) = activity_of(context, irp) else {
        return NtStatus::NOT_FOUND.to_register();
    };
    context.write(activity, &found.to_bytes());
    NtStatus::SUCCESS.to_register()
}

/// Attaches an activity id to a request: the given one, or that of the current thread.
fn set_request(context: &Context, irp: u64, activity: u64) -> u64 {
    let value = request(context, irp);
    let activity = if activity == 0 {
        let irql = context.call().irql;
        if irql > Irql::PASSIVE_LEVEL {
            context.stop(
                Rule::ActivityIrql,
                format!(
                    "{} was called without an activity id at {irql} from {}; the highest IRQL for \
                     that is {}",
                    context.call().name,
                    context.caller(),
                    Irql::PASSIVE_LEVEL
                ),
            );
        }
        context.activities().of_thread(context.identity().thread)
    } else {
        Guid::from_bytes(context.read(activity))
    };
    if activity == Guid::NULL {
        return NtStatus::NOT_SUPPORTED.to_register();
    }
    // Another thread can cancel the request meanwhile, which changes other fields.
    let at = irp.wrapping_add(std::mem::offset_of!(Irp, allocation_flags) as u64);
    context.write(at, &(value.allocation_flags | HAS_ACTIVITY));
    context.activities().set_of_request(irp, activity);
    NtStatus::SUCCESS.to_register()
}

/// Returns the address of the thread's activity id, or null.
fn get_thread(context: &Context) -> u64 {
    let this = context.identity().thread;
    context.activities().pointer_of_thread(this)
}

/// Sets the address of the thread's activity id, and returns the one before.
fn set_thread(context: &Context, activity: u64) -> u64 {
    let before = get_thread(context);
    point_thread_to(context, activity);
    before
}

/// Sets the address of the thread's activity id back to the one before.
fn clear_thread(context: &Context, original: u64) -> u64 {
    point_thread_to(context, original);
    0
}

fn point_thread_to(context: &Context, address: u64) {
    let this = context.identity().thread;
    let activity = if address == 0 { Guid::NULL } else { Guid::from_bytes(context.read(address)) };
    context.activities().set_pointer(this, address, activity);
}

/// Copies a request's activity id, and sets the copy as the thread's.
fn propagate(context: &Context, irp: u64, propagated: u64, original: u64) -> u64 {
    let Some(found) = activity_of(context, irp) else {
        return NtStatus::NOT_FOUND.to_register();
    };
    context.write(propagated, &found.to_bytes());
    let before = set_thread(context, propagated);
    context.write(original, &before);
    NtStatus::SUCCESS.to_register()
}

/// Tells the I/O manager's own provider, which no session enables here, that one activity continues
/// another.
fn transfer(context: &Context, activity: u64, related: u64) -> u64 {
    for address in [activity, related] {
        context.check_address("an activity id", address, 16);
    }
    0
}
