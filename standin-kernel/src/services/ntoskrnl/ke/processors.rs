//! Processors: their numbers, groups and nodes.

use super::thread_objects::processors;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
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
];

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
