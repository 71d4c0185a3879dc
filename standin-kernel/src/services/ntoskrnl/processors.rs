//! Times, processors and other facts about the system.

use super::{
    context::{Context, Entries},
    thread_objects::processors,
};
use crate::{
    execution::{
        identity::Identity,
        routine::{Routine, low_half},
    },
    ground::{clock::Clock, irql::Irql, memory, status::NtStatus},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeQueryInterruptTimePrecise", HIGH, Routine::One(interrupt_time_precise)),
    ("KeQueryInterruptTime", HIGH, Routine::Zero(interrupt_time)),
    ("KeQueryUnbiasedInterruptTime", HIGH, Routine::Zero(interrupt_time)),
    ("KeQueryTimeIncrement", HIGH, Routine::Zero(time_increment)),
    ("KeQueryTickCount", HIGH, Routine::One(tick_count)),
    ("KeQuerySystemTime", HIGH, Routine::One(system_time)),
    ("KeStallExecutionProcessor", HIGH, Routine::One(stall)),
    ("KeQueryActiveProcessorCount", HIGH, Routine::One(active_count)),
    ("KeQueryActiveProcessorCountEx", HIGH, Routine::One(active_count_of_group)),
    ("KeQueryMaximumProcessorCount", HIGH, Routine::Zero(count)),
    ("KeQueryMaximumProcessorCountEx", HIGH, Routine::One(active_count_of_group)),
    ("KeQueryActiveProcessors", HIGH, Routine::Zero(processors)),
    ("KeQueryGroupAffinity", HIGH, Routine::One(group_affinity)),
    ("KeQueryActiveGroupCount", HIGH, Routine::Zero(group_count)),
    ("KeQueryMaximumGroupCount", HIGH, Routine::Zero(group_count)),
    ("KeQueryNodeActiveAffinity", HIGH, Routine::Three(node_affinity)),
    ("KeQueryHighestNodeNumber", HIGH, Routine::Zero(highest_node)),
    ("KeGetProcessorIndexFromNumber", HIGH, Routine::One(index_from_number)),
    ("KeGetProcessorNumberFromIndex", HIGH, Routine::Two(number_from_index)),
    ("KeGetCurrentProcessorNumberEx", HIGH, Routine::One(current_number)),
    ("MmIsAddressValid", Irql::DISPATCH_LEVEL, Routine::One(is_address_valid)),
    ("MmQuerySystemSize", HIGH, Routine::Zero(system_size)),
    ("ExGetPreviousMode", Irql::DISPATCH_LEVEL, Routine::Zero(previous_mode)),
    ("IoGetStackLimits", Irql::APC_LEVEL, Routine::Two(stack_limits)),
    ("IoGetInitialStack", Irql::APC_LEVEL, Routine::Zero(stack_top)),
    ("IoWithinStackLimits", Irql::APC_LEVEL, Routine::Two(is_in_stack)),
];

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

fn count(context: &Context) -> u64 {
    u64::from(context.processors())
}

fn active_count(context: &Context, affinity: u64) -> u64 {
    if affinity != 0 {
        context.write(affinity, &processors(context));
    }
    count(context)
}

/// `ALL_PROCESSOR_GROUPS`.
const ALL_GROUPS: u64 = 0xFFFF;

fn active_count_of_group(context: &Context, group: u64) -> u64 {
    match group & 0xFFFF {
        0 | ALL_GROUPS => count(context),
        _ => 0,
    }
}

fn group_affinity(context: &Context, group: u64) -> u64 {
    if group.trailing_zeros() >= 16 { processors(context) } else { 0 }
}

const fn group_count(_context: &Context) -> u64 {
    1
}

/// Returns the processors of a node. The only node is 0.
fn node_affinity(context: &Context, node: u64, affinity: u64, its_count: u64) -> u64 {
    let is_node = node.trailing_zeros() >= 16;
    if affinity != 0 {
        let mask = if is_node { processors(context) } else { 0 };
        context.write(affinity, &[mask, 0]);
    }
    if its_count != 0 {
        let all = if is_node { context.processors() } else { 0 };
        context.write(its_count, &all);
    }
    0
}

const fn highest_node(_context: &Context) -> u64 {
    0
}

/// `INVALID_PROCESSOR_INDEX`.
const NO_INDEX: u64 = 0xFFFF_FFFF;

fn index_from_number(context: &Context, number: u64) -> u64 {
    let [group, number]: [u16; 2] = context.read(number);
    let number = number & 0xFF;
    if group == 0 && number < context.processors() { u64::from(number) } else { NO_INDEX }
}

fn number_from_index(context: &Context, index: u64, number: u64) -> u64 {
    let index = low_half(index);
    let Some(index) = u16::try_from(index).ok().filter(|index| *index < context.processors())
    else {
        return NtStatus::INVALID_PARAMETER.to_register();
    };
    context.write(number, &[0, index]);
    NtStatus::SUCCESS.to_register()
}

/// Returns the current processor's index.
fn current_number(context: &Context, number: u64) -> u64 {
    let index = context.processor();
    if number != 0 {
        context.write(number, &[0, index]);
    }
    u64::from(index)
}

fn is_address_valid(_context: &Context, address: u64) -> u64 {
    u64::from(memory::read::<u8>(address).is_ok())
}

/// `MmLargeSystem`.
const fn system_size(_context: &Context) -> u64 {
    2
}

/// Returns `UserMode` on a thread of a program's process, which entered the kernel with a request, and
/// `KernelMode` on the system's threads.
fn previous_mode(context: &Context) -> u64 {
    /// `KernelMode` and `UserMode`.
    const MODES: [u64; 2] = [0, 1];
    let system = [Identity::IDLE.process, Identity::SYSTEM.process];
    let is_user = !system.contains(&context.identity().process);
    MODES[usize::from(is_user)]
}

fn stack_top(context: &Context) -> u64 {
    context.stack().top()
}

/// Returns whether a region is in the stack of the current thread.
fn is_in_stack(context: &Context, start: u64, size: u64) -> u64 {
    let stack = context.stack().addresses();
    let end = start.checked_add(size);
    u64::from(stack.contains(&start) && end.is_some_and(|end| end <= stack.end))
}

fn stack_limits(context: &Context, low: u64, high: u64) -> u64 {
    context.write(low, &context.stack().bottom());
    context.write(high, &context.stack().top());
    0
}
