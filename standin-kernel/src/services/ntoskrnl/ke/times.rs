//! Times, and waiting for them.

use super::dispatcher::deadline;
use crate::{
    execution::{
        coroutine::pass_time,
        routine::{Routine, low_half},
    },
    ground::{clock::Clock, irql::Irql, rule::Rule},
    services::{
        ntoskrnl::context::{Context, Entries},
        verifier::Verifier,
    },
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeDelayExecutionThread", Irql::APC_LEVEL, Routine::Three(ke_delay_execution_thread)),
    ("KeQueryPerformanceCounter", HIGH, Routine::One(ke_query_performance_counter)),
    ("KeQuerySystemTimePrecise", HIGH, Routine::One(ke_query_system_time_precise)),
    ("KeQueryInterruptTimePrecise", HIGH, Routine::One(interrupt_time_precise)),
    ("KeQueryInterruptTime", HIGH, Routine::Zero(interrupt_time)),
    ("KeQueryUnbiasedInterruptTime", HIGH, Routine::Zero(interrupt_time)),
    ("KeQueryTimeIncrement", HIGH, Routine::Zero(time_increment)),
    ("KeQueryTickCount", HIGH, Routine::One(tick_count)),
    ("KeQuerySystemTime", HIGH, Routine::One(system_time)),
    ("KeStallExecutionProcessor", HIGH, Routine::One(stall)),
];

/// Waits in virtual time. The interval is in 100 ns units: negative ones are relative to now,
/// positive ones count from 1601.
fn ke_delay_execution_thread(context: &Context, _mode: u64, _alertable: u64, interval: u64) -> u64 {
    if Verifier::is_in_enable_callback(context) {
        context.stop(
            Rule::EnableCallbackBlocks,
            format!(
                "{} was called from {} inside an enable callback, which must not wait",
                context.call().name,
                context.caller()
            ),
        );
    }
    let interval: i64 = context.read(interval);
    pass_time(context, deadline(context, interval));
    0
}

fn ke_query_performance_counter(context: &Context, frequency: u64) -> u64 {
    if frequency != 0 {
        context.write(frequency, &Clock::FREQUENCY);
    }
    context.clock().counter().cast_unsigned()
}

fn ke_query_system_time_precise(context: &Context, time: u64) -> u64 {
    let clock = context.clock();
    context.write(time, &clock.file_time(clock.counter()));
    0
}

/// Returns the time of the last tick since the kernel's start. As each routine that reads a time, it lets
/// time pass.
fn interrupt_time(context: &Context) -> u64 {
    let shared = context.host().shared_data();
    shared.interrupt_time().cast_unsigned()
}

fn interrupt_time_precise(context: &Context, counter: u64) -> u64 {
    let now = context.clock().counter();
    // The performance counter has the same unit.
    const { assert!(Clock::FREQUENCY == 10_000_000, "it counts units of 100 ns") };
    context.write(counter, &now);
    now.cast_unsigned()
}

const fn time_increment(_context: &Context) -> u64 {
    Clock::TICK.cast_unsigned()
}

fn tick_count(context: &Context, to: u64) -> u64 {
    let ticks = context.host().shared_data().ticks();
    context.write(to, &ticks);
    0
}

/// Returns the time of the last tick.
fn system_time(context: &Context, to: u64) -> u64 {
    let time = context.host().shared_data().system_time();
    context.write(to, &time);
    0
}

/// Lets microseconds pass.
fn stall(context: &Context, microseconds: u64) -> u64 {
    let ticks = i64::from(low_half(microseconds)) * 10;
    let clock = context.clock();
    clock.move_to(clock.last().saturating_add(ticks));
    0
}
