//! Timers that the kernel allocates for drivers.

use crate::{
    execution::routine::Routine,
    ground::{abi::KernelTimer, irql::Irql},
    services::{
        managers::pool::Tag,
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
    ("ExAllocateTimer", DISPATCH, Routine::of(allocate)),
    ("ExSetTimer", DISPATCH, Routine::of(set)),
    ("ExCancelTimer", DISPATCH, Routine::of(cancel)),
    ("ExDeleteTimer", DISPATCH, Routine::of(delete)),
];

/// The tag of the timers that this module allocates.
const TAG: Tag = Tag(u32::from_le_bytes(*b"ExTm"));

fn allocate(context: &Context, callback: u64, its_context: u64, attributes: u32) -> u64 {
    /// `EX_TIMER_HIGH_RESOLUTION`, `EX_TIMER_NO_WAKE` and `EX_TIMER_NOTIFICATION`.
    const ATTRIBUTES: u32 = 4 | 8 | 1 << 31;
    if attributes & !ATTRIBUTES != 0 {
        return 0;
    }
    let size = size_of::<KernelTimer>();
    let Some(timer) = context.allocate(size, TAG, false) else {
        return 0;
    };
    let its_kind = if attributes & (1 << 31) == 0 {
        kind::SYNCHRONIZATION_TIMER
    } else {
        kind::NOTIFICATION_TIMER
    };
    initialize(context, timer, its_kind, size, 0);
    context.state().get::<Allocated>().0.push((timer, callback, its_context));
    timer
}

fn cancel(context: &Context, timer: u64, _parameters: u64) -> bool {
    allocated(context, timer);
    stop(context, timer)
}

/// Frees a timer. If the timer is set, `cancel` must be set. `wait` requires `PASSIVE_LEVEL`.
fn delete(context: &Context, timer: u64, cancel: bool, wait: bool, _parameters: u64) -> bool {
    allocated(context, timer);
    if wait {
        context.require_irql(Irql::APC_LEVEL, "to wait");
        if !cancel {
            context.stop_for_misuse("with Wait but without Cancel");
        }
    }
    let was_set = is_set(context, timer);
    if was_set && !cancel {
        context.stop_for_misuse("without Cancel for a timer that is set");
    }
    stop(context, timer);
    // Callbacks that are still queued must not refer to the freed timer.
    dpc::take_queued(context, |address, _| address == timer);
    context.state().get::<Allocated>().0.retain(|(one, ..)| *one != timer);
    context.free_own(timer);
    was_set
}
