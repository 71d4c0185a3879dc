//! Times and delays.

use super::dispatcher::{check_may_wait, deadline};
use crate::{
    execution::{
        coroutine::pass_time,
        routine::{At, routine},
    },
    ground::{NtStatus, clock::Clock},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeDelayExecutionThread", ke_delay_execution_thread),
    routine("KeQueryPerformanceCounter", ke_query_performance_counter),
    routine("KeQuerySystemTimePrecise", ke_query_system_time_precise),
    routine("KeQueryInterruptTimePrecise", interrupt_time_precise),
    routine("KeQueryInterruptTime", interrupt_time),
    routine("KeQueryUnbiasedInterruptTime", interrupt_time),
    routine("KeQueryUnbiasedInterruptTimePrecise", interrupt_time_precise),
    routine("KeQueryTimeIncrement", time_increment),
    routine("KeQueryTickCount", tick_count),
    routine("KeQuerySystemTime", system_time),
    routine("KeStallExecutionProcessor", stall),
];

/// Waits in virtual time. The interval is in units of 100 ns: a negative value is relative to now, and
/// a positive value counts from 1601.
fn ke_delay_execution_thread(
    context: &Context,
    _mode: i8,
    _alertable: bool,
    interval: At<i64>,
) -> NtStatus {
    check_may_wait(context);
    let interval = interval.read(context);
    pass_time(context, deadline(context, interval));
    NtStatus::SUCCESS
}

fn ke_query_performance_counter(context: &Context, frequency: At<i64>) -> u64 {
    frequency.write_optional(context, Clock::FREQUENCY);
    context.clock().counter().cast_unsigned()
}

fn ke_query_system_time_precise(context: &Context, time: At<i64>) {
    let clock = context.clock();
    time.write(context, clock.file_time(clock.counter()));
}

/// Returns the time of the last clock interrupt since the kernel's start. As in all routines that read a
/// time, this advances the clock.
fn interrupt_time(context: &Context) -> u64 {
    context.host().shared_data().last_interrupt.cast_unsigned()
}

fn interrupt_time_precise(context: &Context, counter: At<i64>) -> u64 {
    let now = context.clock().counter();
    // The performance counter uses the same unit.
    const { assert!(Clock::FREQUENCY == 10_000_000, "it counts units of 100 ns") };
    counter.write(context, now);
    now.cast_unsigned()
}

/// Returns the interval between two ticks in units of 100 ns.
pub fn tick() -> u32 {
    u32::try_from(Clock::TICK).unwrap_or(u32::MAX)
}

fn time_increment(_context: &Context) -> u32 {
    tick()
}

fn tick_count(context: &Context, current_count: At<i64>) {
    context.write(current_count.0, &context.host().shared_data().ticks());
}

/// Returns the time of the last clock interrupt.
fn system_time(context: &Context, current_time: At<i64>) {
    context.write(current_time.0, &context.host().shared_data().system_time());
}

/// Lets time pass, in microseconds.
fn stall(context: &Context, microseconds: u32) {
    let ticks = i64::from(microseconds) * 10;
    let clock = context.clock();
    clock.move_to(clock.last().saturating_add(ticks));
}
