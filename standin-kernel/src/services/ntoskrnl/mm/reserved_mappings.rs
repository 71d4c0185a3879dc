//! Address ranges that drivers reserve, so that mapping locked pages later cannot fail.

use std::collections::BTreeMap;

use super::mdl;
use crate::{
    execution::routine::{At, Memory, routine},
    ground::{abi::Mdl, arena::PAGE},
    services::{
        managers::pool::Tag,
        ntoskrnl::{
            context::{Context, Entries},
            ex::pool,
        },
    },
};

pub const ENTRIES: Entries = &[
    routine("MmAllocateMappingAddress", reserve),
    routine("MmFreeMappingAddress", free),
    routine("MmMapLockedPagesWithReservedMapping", map),
    routine("MmUnmapReservedMapping", unmap),
];

/// The maximum length of a range: that of the largest list's buffer.
const MAXIMUM: u64 = 4 << 30;

/// A reserved range.
struct Range {
    length: u64,
    tag: u32,
    /// The list that is mapped, and its address, which is that of the list's buffer: pages have one
    /// address in this kernel.
    mapped: Option<(u64, u64)>,
}

/// The ranges, by address.
#[derive(Default)]
struct Ranges(BTreeMap<u64, Range>);

/// Uses a range. Bugchecks if it was reserved with another tag, or not at all.
fn with<R>(context: &Context, base: Memory, tag: u32, body: impl FnOnce(&mut Range) -> R) -> R {
    let found = context.with_state(|Ranges(all): &mut Ranges| {
        all.get_mut(&base.0).filter(|range| range.tag == tag).map(body)
    });
    found.unwrap_or_else(|| {
        context.stop_for_misuse(&format!(
            "for the address 0x{:016X}, which is not reserved with this tag",
            base.0
        ))
    })
}

/// Reserves a range. A block of pool stands for it, so that a range that is never freed is a leak. An
/// access to the range before a list is mapped is not noticed.
fn reserve(context: &Context, length: u64, tag: u32) -> Memory {
    if length == 0 || tag == 0 {
        context.stop_for_misuse("with a length or a tag of 0");
    }
    let Some(length) = length.checked_next_multiple_of(PAGE as u64).filter(|it| *it <= MAXIMUM)
    else {
        return At::NULL;
    };
    let Some(block) = context.allocate(PAGE, Tag(tag), false) else { return At::NULL };
    let range = Range { length, tag, mapped: None };
    context.with_state(|Ranges(all): &mut Ranges| all.insert(block, range));
    At::new(block)
}

fn free(context: &Context, base: Memory, tag: u32) {
    if with(context, base, tag, |range| range.mapped.is_some()) {
        context.stop_for_misuse("for a range in which a list is mapped");
    }
    context.with_state(|Ranges(all): &mut Ranges| all.remove(&base.0));
    pool::free_block(context, base.0);
}

/// Maps a list. Returns null if the range is too small.
fn map(context: &Context, base: Memory, tag: u32, list: At<Mdl>, cache: u32) -> Memory {
    let value = list.read(context);
    let needed = u64::from(value.byte_offset) + u64::from(value.byte_count);
    let (length, is_mapped) =
        with(context, base, tag, |range| (range.length, range.mapped.is_some()));
    if is_mapped {
        context.stop_for_misuse("for a range in which a list is already mapped");
    }
    if needed > length {
        return At::NULL;
    }
    let address = mdl::map(context, list, 0, cache, At::NULL, 1, 0);
    with(context, base, tag, |range| range.mapped = Some((list.0, address.0)));
    address
}

fn unmap(context: &Context, base: Memory, tag: u32, list: At<Mdl>) {
    let mapped = with(context, base, tag, |range| range.mapped.take());
    match mapped {
        Some((mapped, address)) if mapped == list.0 => mdl::unmap(context, At::new(address), list),
        _ => context.stop_for_misuse("for a list that is not mapped in the range"),
    }
}
