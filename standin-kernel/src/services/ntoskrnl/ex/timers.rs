//! Timers that the kernel allocates for drivers.

use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::KernelTimer, irql::Irql},
    services::{
        managers::pool::{Tag, Wanted},
        ntoskrnl::{
            context::{Context, Entries},
            ke::{
                dpc,
                header::{initialize, kind},
                timers::{Allocated, allocated, is_set, set, stop},
            },
        },
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExAllocateTimer", DISPATCH, Routine::Three(allocate)),
    ("ExSetTimer", DISPATCH, Routine::Four(set)),
    ("ExCancelTimer", DISPATCH, Routine::Two(cancel)),
    ("ExDeleteTimer", DISPATCH, Routine::Four(delete)),
];

/// The tag of the timers that this module allocates.
const TAG: Tag = Tag(u32::from_le_bytes(*b"ExTm"));

fn allocate(context: &Context, callback: u64, its_context: u64, attributes: u64) -> u64 {
    /// `EX_TIMER_HIGH_RESOLUTION`, `EX_TIMER_NO_WAKE` and `EX_TIMER_NOTIFICATION`.
    const ATTRIBUTES: u32 = 4 | 8 | 1 << 31;
    let attributes = low_half(attributes);
    if attributes & !ATTRIBUTES != 0 {
        return 0;
    }
    let size = size_of::<KernelTimer>();
    let wanted = Wanted { size, tag: TAG, paged: false, uninitialized: false };
    let Some(timer) = context.pool().allocate(wanted, context, context.call()) else {
        return 0;
    };
    let its_kind = if attributes & (1 << 31) == 0 {
        kind::SYNCHRONIZATION_TIMER
    } else {
        kind::NOTIFICATION_TIMER
    };
    initialize(context, timer, its_kind, size, 0);
    let allocated = (timer, callback, its_context);
    context.state().get::<Allocated>().0.push(allocated);
    timer
}

fn cancel(context: &Context, timer: u64, _parameters: u64) -> u64 {
    allocated(context, timer);
    u64::from(stop(context, timer))
}

/// Frees a timer. A set timer must be cancelled by the call, and a wait is for `PASSIVE_LEVEL`.
fn delete(context: &Context, timer: u64, cancel: u64, wait: u64, _parameters: u64) -> u64 {
    allocated(context, timer);
    let cancels = cancel & 0xFF != 0;
    if wait & 0xFF != 0 {
        context.require_irql(Irql::APC_LEVEL, "to wait");
        if !cancels {
            context.stop_for_misuse("with Wait and without Cancel");
        }
    }
    let was_set = is_set(context, timer);
    if was_set && !cancels {
        context.stop_for_misuse("without Cancel for a timer that is set");
    }
    stop(context, timer);
    // A callback that is queued has no timer any more.
    dpc::take_queued(context, |address, _| address == timer);
    let mut state = context.state();
    state.get::<Allocated>().0.retain(|(one, ..)| *one != timer);
    drop(state);
    // The block is this module's, and only this routine frees it.
    drop(context.pool().free(timer, context, context.call()));
    u64::from(was_set)
}
