//! Processors: their numbers, groups and nodes.

use super::thread_objects::processors;
use crate::{
    execution::routine::{At, routine},
    ground::{
        NtResult, NtStatus,
        opaque::{GroupAffinity, ProcessorNumber},
        shared_data,
    },
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("KeQueryActiveProcessorCount", active_count),
    routine("KeQueryActiveProcessorCountEx", active_count_of_group),
    routine("KeQueryMaximumProcessorCount", count),
    routine("KeQueryMaximumProcessorCountEx", active_count_of_group),
    routine("KeQueryActiveProcessors", processors),
    routine("KeQueryGroupAffinity", group_affinity),
    routine("KeQueryActiveGroupCount", group_count),
    routine("KeQueryMaximumGroupCount", group_count),
    routine("KeQueryNodeActiveAffinity", node_affinity),
    routine("KeQueryHighestNodeNumber", highest_node),
    routine("KeGetProcessorIndexFromNumber", index_from_number),
    routine("KeGetProcessorNumberFromIndex", number_from_index),
    routine("ExIsProcessorFeaturePresent", has_feature),
    routine("KeGetCurrentProcessorNumberEx", current_number),
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
fn node_affinity(
    context: &Context,
    node: u16,
    affinity: At<GroupAffinity>,
    processor_count: At<u16>,
) {
    let is_node = node == 0;
    let (mask, count) = if is_node { (processors(context), context.processors()) } else { (0, 0) };
    context.write_optional(affinity.0, &[mask, 0]);
    processor_count.write_optional(context, count);
}

const fn highest_node(_context: &Context) -> u16 {
    0
}

/// `INVALID_PROCESSOR_INDEX`.
const NO_INDEX: u32 = 0xFFFF_FFFF;

fn index_from_number(context: &Context, number: At<ProcessorNumber>) -> u32 {
    let [group, number]: [u16; 2] = context.read(number.0);
    let number = number & 0xFF;
    if group == 0 && number < context.processors() { u32::from(number) } else { NO_INDEX }
}

fn number_from_index(context: &Context, index: u32, number: At<ProcessorNumber>) -> NtResult {
    let index = u16::try_from(index).ok().filter(|index| *index < context.processors());
    context.write(number.0, &[0, index.ok_or(NtStatus::INVALID_PARAMETER)?]);
    Ok(())
}

/// Returns whether the host's processors have a feature (`PF_*`).
fn has_feature(_context: &Context, feature: u32) -> bool {
    usize::try_from(feature).is_ok_and(shared_data::has_feature)
}

/// Returns the current processor's index.
fn current_number(context: &Context, number: At<ProcessorNumber>) -> u32 {
    let index = context.processor();
    context.write_optional(number.0, &[0, index]);
    index.into()
}
