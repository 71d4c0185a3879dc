//! Processors: their numbers, groups and nodes.

use super::thread_objects::processors;
use crate::{
    execution::routine::{At, Routine},
    ground::{NtResult, NtStatus, irql::Irql, shared_data},
    services::ntoskrnl::context::{Context, Entries},
};

const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("KeQueryActiveProcessorCount", HIGH, Routine::of(active_count)),
    ("KeQueryActiveProcessorCountEx", HIGH, Routine::of(active_count_of_group)),
    ("KeQueryMaximumProcessorCount", HIGH, Routine::of(count)),
    ("KeQueryMaximumProcessorCountEx", HIGH, Routine::of(active_count_of_group)),
    ("KeQueryActiveProcessors", HIGH, Routine::of(processors)),
    ("KeQueryGroupAffinity", HIGH, Routine::of(group_affinity)),
    ("KeQueryActiveGroupCount", HIGH, Routine::of(group_count)),
    ("KeQueryMaximumGroupCount", HIGH, Routine::of(group_count)),
    ("KeQueryNodeActiveAffinity", HIGH, Routine::of(node_affinity)),
    ("KeQueryHighestNodeNumber", HIGH, Routine::of(highest_node)),
    ("KeGetProcessorIndexFromNumber", HIGH, Routine::of(index_from_number)),
    ("KeGetProcessorNumberFromIndex", HIGH, Routine::of(number_from_index)),
    ("ExIsProcessorFeaturePresent", Irql::PASSIVE_LEVEL, Routine::of(has_feature)),
    ("KeGetCurrentProcessorNumberEx", HIGH, Routine::of(current_number)),
];

fn count(context: &Context) -> u32 {
    context.processors().into()
}

fn active_count(context: &Context, affinity: At<u64>) -> u32 {
    affinity.write_optional(context, processors(context));
    count(context)
}

/// `ALL_PROCESSOR_GROUPS`.
const ALL_GROUPS: u16 = 0xFFFF;

fn active_count_of_group(context: &Context, group: u16) -> u32 {
    match group {
        0 | ALL_GROUPS => count(context),
        _ => 0,
    }
}

fn group_affinity(context: &Context, group: u16) -> u64 {
    if group == 0 { processors(context) } else { 0 }
}

const fn group_count(_context: &Context) -> u16 {
    1
}

/// Returns the processors of a node. The only node is node 0.
fn node_affinity(context: &Context, node: u16, affinity: u64, its_count: At<u16>) {
    let is_node = node == 0;
    let (mask, count) = if is_node { (processors(context), context.processors()) } else { (0, 0) };
    context.write_optional(affinity, &[mask, 0]);
    its_count.write_optional(context, count);
}

const fn highest_node(_context: &Context) -> u16 {
    0
}

/// `INVALID_PROCESSOR_INDEX`.
const NO_INDEX: u32 = 0xFFFF_FFFF;

fn index_from_number(context: &Context, number: u64) -> u32 {
    let [group, number]: [u16; 2] = context.read(number);
    let number = number & 0xFF;
    if group == 0 && number < context.processors() { u32::from(number) } else { NO_INDEX }
}

fn number_from_index(context: &Context, index: u32, number: u64) -> NtResult {
    let index = u16::try_from(index).ok().filter(|index| *index < context.processors());
    context.write(number, &[0, index.ok_or(NtStatus::INVALID_PARAMETER)?]);
    Ok(())
}

/// Returns whether the host's processors have a feature (`PF_*`).
fn has_feature(_context: &Context, feature: u32) -> bool {
    usize::try_from(feature).is_ok_and(shared_data::has_feature)
}

/// Returns the current processor's index.
fn current_number(context: &Context, number: u64) -> u32 {
    let index = context.processor();
    context.write_optional(number, &[0, index]);
    index.into()
}
