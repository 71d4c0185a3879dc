//! Lookaside lists.

use std::collections::{BTreeSet, HashMap};

use super::pool;
use crate::{
    execution::routine::{Routine, low_half},
    ground::{abi::Lookaside, irql::Irql, status::NtStatus},
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const APC: Irql = Irql::APC_LEVEL;

pub const ENTRIES: Entries = &[
    ("ExInitializeNPagedLookasideList", DISPATCH, Routine::Seven(initialize_non_paged)),
    ("ExInitializePagedLookasideList", APC, Routine::Seven(initialize_paged)),
    ("ExInitializeLookasideListEx", DISPATCH, Routine::Eight(initialize_ex)),
    ("ExDeleteNPagedLookasideList", DISPATCH, Routine::One(delete_list)),
    ("ExDeletePagedLookasideList", APC, Routine::One(delete_list)),
    ("ExDeleteLookasideListEx", DISPATCH, Routine::One(delete_list)),
    ("ExFlushLookasideListEx", DISPATCH, Routine::One(flush_list)),
];

/// The lookaside lists, by address: whether `ExInitializeLookasideListEx` made each.
#[derive(Default)]
struct Lists(HashMap<u64, bool>);

/// Initializes a list. The inline routines of the headers take entries from the list in it, which stays
/// empty until they free one, and call its allocation and free routines.
fn initialize_list(
    context: &Context,
    list: u64,
    [allocate, free]: [u64; 2],
    [default_allocate, default_free]: [&str; 2],
    [kind, size, tag]: [u64; 3],
    is_extended: bool,
) {
    let or = |given: u64, name: &str| match given {
        0 => context.address_of(name).unwrap_or(0),
        given => given,
    };
    let value = Lookaside {
        head: [0; 2],
        depth: 4,
        maximum_depth: 256,
        total_allocates: 0,
        allocate_misses: 0,
        total_frees: 0,
        free_misses: 0,
        kind: low_half(kind),
        tag: low_half(tag),
        size: low_half(size),
        allocate: or(allocate, default_allocate),
        free: or(free, default_free),
        list_entry: [0; 2],
        last_total_allocates: 0,
        last_misses: 0,
        future: [0; 2],
    };
    context.write(list, &value);
    context.state().get::<Lists>().0.insert(list, is_extended);
}

const PLAIN: [&str; 2] = ["ExAllocatePoolWithTag", "ExFreePool"];

fn initialize_non_paged(context: &Context, arguments: [u64; 7]) -> u64 {
    /// `NonPagedPoolNx`.
    const NX: u64 = 512;
    let [list, allocate, free, _flags, size, tag, _depth] = arguments;
    let fields = [NX, size, tag];
    initialize_list(context, list, [allocate, free], PLAIN, fields, false);
    0
}

fn initialize_paged(context: &Context, arguments: [u64; 7]) -> u64 {
    let [list, allocate, free, _flags, size, tag, _depth] = arguments;
    let fields = [1, size, tag];
    initialize_list(context, list, [allocate, free], PLAIN, fields, false);
    0
}

/// Initializes a list whose routines take the list too.
fn initialize_ex(context: &Context, arguments: [u64; 8]) -> u64 {
    let [list, allocate, free, kind, flags, size, tag, _depth] = arguments;
    if low_half(flags) & !3 != 0 || size == 0 {
        return NtStatus::INVALID_PARAMETER.to_register();
    }
    let names = ["ExAllocatePoolWithTag", "ExFreePool"];
    let fields = [kind, size, tag];
    initialize_list(context, list, [allocate, free], names, fields, true);
    NtStatus::SUCCESS.to_register()
}

/// Frees the entries of a list.
fn flush_list(context: &Context, list: u64) -> u64 {
    let Some(is_extended) = context.state().get::<Lists>().0.get(&list).copied() else {
        context.stop_for_misuse(&format!("with 0x{list:016X}, which is not a lookaside list"));
    };
    let mut value: Lookaside = context.read(list);
    let default = context.address_of("ExFreePool");
    let mut entry = value.head[1] & !0xF;
    let mut seen = BTreeSet::new();
    while entry != 0 {
        if !seen.insert(entry) {
            context.stop_for_misuse("for a list whose free entries lead back to themselves");
        }
        let next: u64 = context.read(entry);
        if Some(value.free) == default {
            pool::free_block(context, entry);
        } else if is_extended {
            context.call_driver("the lookaside list's free routine", value.free, [entry, list]);
        } else {
            context.call_driver("the lookaside list's free routine", value.free, [entry]);
        }
        entry = next;
    }
    value.head = [0; 2];
    context.write(list, &value);
    0
}

fn delete_list(context: &Context, list: u64) -> u64 {
    flush_list(context, list);
    context.state().get::<Lists>().0.remove(&list);
    0
}
