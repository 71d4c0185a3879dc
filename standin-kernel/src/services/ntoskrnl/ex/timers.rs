//! Timers that the kernel allocates for drivers.

use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::{
        abi::KernelTimer,
        irql::Irql,
        opaque::{ExTimer, TimerDeleteParameters},
    },
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

pub const ENTRIES: Entries = &[
    routine("ExAllocateTimer", allocate),
    routine("ExSetTimer", set),
    routine("ExCancelTimer", cancel),
    routine("ExDeleteTimer", delete),
];

/// The tag of the timers that this module allocates.
const TAG: Tag = Tag(u32::from_le_bytes(*b"ExTm"));

fn allocate(
    context: &Context,
    callback: Callback,
    callback_context: Memory,
    attributes: u32,
) -> At<ExTimer> {
    /// `EX_TIMER_HIGH_RESOLUTION`, `EX_TIMER_NO_WAKE` and `EX_TIMER_NOTIFICATION`.
    const ATTRIBUTES: u32 = 4 | 8 | 1 << 31;
    if attributes & !ATTRIBUTES != 0 {
        return At::NULL;
    }
    let size = size_of::<KernelTimer>();
    let Some(timer) = context.allocate(size, TAG, false) else {
        return At::NULL;
    };
    let timer_kind = if attributes & (1 << 31) == 0 {
        kind::SYNCHRONIZATION_TIMER
    } else {
        kind::NOTIFICATION_TIMER
    };
    initialize(context, timer, timer_kind, size, 0);
    context.state().get::<Allocated>().0.push((timer, callback.0, callback_context.0));
    At::new(timer)
}

fn cancel(context: &Context, timer: At<ExTimer>, _parameters: Memory) -> bool {
    allocated(context, timer.0);
    stop(context, timer.0)
}

/// Frees a timer. If the timer is set, `cancel` must be set. `wait` requires `PASSIVE_LEVEL`.
fn delete(
    context: &Context,
    timer: At<ExTimer>,
    cancel: bool,
    wait: bool,
    _parameters: At<TimerDeleteParameters>,
) -> bool {
    allocated(context, timer.0);
    if wait {
        context.require_irql(Irql::APC_LEVEL, "to wait");
        if !cancel {
            context.stop_for_misuse("with Wait but without Cancel");
        }
    }
    let was_set = is_set(context, timer.0);
    if was_set && !cancel {
        context.stop_for_misuse("without Cancel for a timer that is set");
    }
    stop(context, timer.0);
    // Callbacks that are still queued must not refer to the freed timer.
    dpc::take_queued(context, |address, _| address == timer.0);
    context.state().get::<Allocated>().0.retain(|(one, ..)| *one != timer.0);
    context.free_own(timer.0);
    was_set
}
