//! The activity ids of the I/O manager. A driver attaches an id to a request, and the thread that
//! serves the request can adopt the id.

use etl_file::Guid;

use super::service::Context;
use crate::{
    execution::routine::{At, Routine, routine},
    ground::{NtResult, NtStatus, abi::Irp, irql::Irql, rule::Rule},
};

/// The exports. The documentation allows every IRQL, but for `IoSetActivityIdIrp` only with
/// an explicit id.
pub const ENTRIES: &[Routine<Context>] = &[
    routine("IoClearActivityIdThread", clear_thread),
    routine("IoGetActivityIdIrp", get_request),
    routine("IoGetActivityIdThread", get_thread),
    routine("IoPropagateActivityIdToThread", propagate),
    routine("IoSetActivityIdIrp", set_request),
    routine("IoSetActivityIdThread", set_thread),
    routine("IoTransferActivityId", transfer),
];

/// The bit of a request's `AllocationFlags` that states that the request has an activity id. It is
/// clear in a reinitialized request, and in other memory at the same address.
const HAS_ACTIVITY: u8 = 0x80;
/// `IO_TYPE_IRP`.
const REQUEST: i16 = 6;

/// Reads a request. Bugchecks if `irp` is not the address of a request.
fn request(context: &Context, irp: u64) -> Irp {
    let value: Irp = context.read(irp);
    if value.kind != REQUEST {
        context
            .stop_call(Rule::ObjectMisused, &format!("with 0x{irp:016X}, which is not a request"));
    }
    value
}

/// Returns the activity id of a request.
fn activity_of(context: &Context, irp: u64) -> Option<Guid> {
    let value = request(context, irp);
    let has_activity = value.allocation_flags & HAS_ACTIVITY != 0;
    has_activity.then(|| context.activities().of_request(irp)).flatten()
}

fn get_request(context: &Context, irp: At<Irp>, activity: At<Guid>) -> NtResult {
    let found = activity_of(context, irp.0).ok_or(NtStatus::NOT_FOUND)?;
    context.write(activity.0, &found.to_bytes());
    Ok(())
}

/// Attaches an activity id to a request: the given id or the current thread's.
fn set_request(context: &Context, irp: At<Irp>, activity: At<Guid>) -> NtResult {
    let value = request(context, irp.0);
    let activity = if activity.is_null() {
        let irql = context.call().irql;
        if irql > Irql::PASSIVE_LEVEL {
            context.stop(
                Rule::ActivityIrql,
                format!(
                    "{} was called without an activity id at {irql} from {}; without an id, it may \
                     be called at IRQL <= {}",
                    context.call().name,
                    context.caller(),
                    Irql::PASSIVE_LEVEL
                ),
            );
        }
        context.activities().current(context.identity().thread)
    } else {
        Guid::from_bytes(context.read(activity.0))
    };
    if activity == Guid::NULL {
        return Err(NtStatus::NOT_SUPPORTED);
    }
    // Another thread can cancel the request concurrently, which changes other fields.
    let at = irp.0.wrapping_add(std::mem::offset_of!(Irp, allocation_flags) as u64);
    context.write(at, &(value.allocation_flags | HAS_ACTIVITY));
    context.activities().set_of_request(irp.0, activity);
    Ok(())
}

/// Returns the address of the thread's activity id, or null.
fn get_thread(context: &Context) -> At<Guid> {
    At::new(context.activities().current_pointer(context.identity().thread))
}

/// Sets the address of the thread's activity id, and returns the previous one.
fn set_thread(context: &Context, activity: At<Guid>) -> At<Guid> {
    let before = get_thread(context);
    clear_thread(context, activity);
    before
}

/// Sets the address of the thread's activity id. The address 0 removes the id.
fn clear_thread(context: &Context, address: At<Guid>) {
    let this = context.identity().thread;
    let activity =
        if address.is_null() { Guid::NULL } else { Guid::from_bytes(context.read(address.0)) };
    context.activities().set_pointer(this, address.0, activity);
}

/// Copies a request's activity id, and sets the copy as the thread's activity id.
fn propagate(context: &Context, irp: At<Irp>, propagated: At<Guid>, original: At<u64>) -> NtResult {
    let found = activity_of(context, irp.0).ok_or(NtStatus::NOT_FOUND)?;
    context.write(propagated.0, &found.to_bytes());
    original.write(context, set_thread(context, propagated).0);
    Ok(())
}

/// Reports that one activity continues another. Windows writes an event of the I/O manager's own
/// provider, which no session enables in the stand-in kernel.
fn transfer(context: &Context, activity: At<Guid>, related: At<Guid>) {
    for address in [activity, related] {
        context.check_address("an activity id", address.0, 16);
    }
}
