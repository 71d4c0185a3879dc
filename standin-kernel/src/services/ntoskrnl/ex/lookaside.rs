//! Lookaside lists.

use std::collections::{BTreeSet, HashMap};

use zerocopy::FromZeros;

use super::pool;
use crate::{
    execution::routine::{At, Callback, low_half, routine},
    ground::{
        NtResult, NtStatus,
        abi::{Lookaside, Pointee},
        opaque::{LookasideEx, NonPagedLookaside, PagedLookaside},
    },
    services::ntoskrnl::context::{Context, Entries},
};

/// `NonPagedPool`. With `POOL_NX_ALLOCATION`, it is `NonPagedPoolNx`.
const NON_PAGED_POOL: u32 = 0;
/// `PagedPool`.
const PAGED_POOL: u32 = 1;

pub const ENTRIES: Entries = &[
    routine("ExInitializeNPagedLookasideList", initialize_of::<NonPagedLookaside, NON_PAGED_POOL>),
    routine("ExInitializePagedLookasideList", initialize_of::<PagedLookaside, PAGED_POOL>),
    routine("ExInitializeLookasideListEx", initialize_ex),
    routine("ExDeleteNPagedLookasideList", delete_list::<NonPagedLookaside>),
    routine("ExDeletePagedLookasideList", delete_list::<PagedLookaside>),
    routine("ExDeleteLookasideListEx", delete_list::<LookasideEx>),
    routine("ExFlushLookasideListEx", flush_list),
];

/// The lookaside lists, by address. The value is set for lists from `ExInitializeLookasideListEx`.
#[derive(Default)]
struct Lists(HashMap<u64, bool>);

/// Initializes a list. The headers' inline routines take entries from the inner list, which is
/// empty until they free an entry. If it is empty or full, they call the allocate and free
/// routines.
fn initialize_list(
    context: &Context,
    list: u64,
    [allocate, free]: [u64; 2],
    (kind, size, tag): (u32, u64, u32),
    is_extended: bool,
) {
    let or = |given: u64, name: &str| match given {
        0 => context.address_of(name).unwrap_or(0),
        given => given,
    };
    let value = Lookaside {
        depth: 4,
        maximum_depth: 256,
        kind,
        tag,
        size: low_half(size),
        allocate_ex: or(allocate, DEFAULTS[0]),
        free_ex: or(free, DEFAULTS[1]),
        ..Lookaside::new_zeroed()
    };
    context.write(list, &value);
    context.state().get::<Lists>().0.insert(list, is_extended);
}

/// The default routines of a list.
const DEFAULTS: [&str; 2] = ["ExAllocatePoolWithTag", "ExFreePool"];

fn initialize_of<T: Pointee, const POOL: u32>(
    context: &Context,
    list: At<T>,
    allocate: Callback,
    free: Callback,
    flags: u32,
    size: u64,
    tag: u32,
    _depth: u16,
) {
    initialize_list(context, list.0, [allocate.0, free.0], (POOL | flags, size, tag), false);
}

/// Initializes a list whose routines receive the list as a parameter.
fn initialize_ex(
    context: &Context,
    list: At<LookasideEx>,
    allocate: Callback,
    free: Callback,
    kind: u32,
    flags: u32,
    size: u64,
    tag: u32,
    _depth: u16,
) -> NtResult {
    if flags & !3 != 0 || size == 0 {
        return Err(NtStatus::INVALID_PARAMETER);
    }
    initialize_list(context, list.0, [allocate.0, free.0], (kind, size, tag), true);
    Ok(())
}

/// Frees the entries of a list.
fn flush_list(context: &Context, list: At<LookasideEx>) {
    let Some(is_extended) = context.state().get::<Lists>().0.get(&list.0).copied() else {
        context.stop_for_wrong(list.0, "a lookaside list");
    };
    let mut value: Lookaside = context.read(list.0);
    let default = context.address_of("ExFreePool");
    let mut entry = value.list_head[1] & !0xF;
    let mut seen = BTreeSet::new();
    while entry != 0 {
        if !seen.insert(entry) {
            context.stop_for_misuse("for a list whose free entries form a cycle");
        }
        let next: u64 = context.read(entry);
        if Some(value.free_ex) == default {
            pool::free_block(context, entry);
        } else if is_extended {
            context.call_driver(
                "the lookaside list's free routine",
                value.free_ex,
                [entry, list.0],
            );
        } else {
            context.call_driver("the lookaside list's free routine", value.free_ex, [entry]);
        }
        entry = next;
    }
    value.list_head = [0; 2];
    context.write(list.0, &value);
}

fn delete_list<T: Pointee>(context: &Context, list: At<T>) {
    flush_list(context, list.cast());
    context.state().get::<Lists>().0.remove(&list.0);
}
