//! Tables of elements: AVL trees and splay trees.

use core::sync::atomic::{AtomicU32, Ordering};

use wdk_sys::{BOOLEAN, PVOID, RTL_GENERIC_COMPARE_RESULTS};

use crate::call::{NULL, at, call, pointer, same};

/// The elements are numbers.
type Element = u32;

const SIZE: u64 = size_of::<Element>() as u64;

static ALLOCATED: AtomicU32 = AtomicU32::new(0);

const fn value(element: PVOID) -> u32 {
    // SAFETY: the kernel passes an element, or a buffer with one.
    unsafe { element.cast::<Element>().read() }
}

unsafe extern "C" fn compare<Table>(
    _table: *mut Table,
    one: PVOID,
    other: PVOID,
) -> RTL_GENERIC_COMPARE_RESULTS {
    match value(one).cmp(&value(other)) {
        core::cmp::Ordering::Less => 0,
        core::cmp::Ordering::Greater => 1,
        core::cmp::Ordering::Equal => 2,
    }
}

unsafe extern "C" fn allocate<Table>(_table: *mut Table, size: u32) -> PVOID {
    ALLOCATED.fetch_add(1, Ordering::Relaxed);
    call!(ExAllocatePool2, 0x40, size, 0x7473_6574)
}

unsafe extern "C" fn free<Table>(_table: *mut Table, node: PVOID) {
    ALLOCATED.fetch_sub(1, Ordering::Relaxed);
    call!(ExFreePoolWithTag, node, 0);
}

/// The routines for one kind of table.
struct Kind {
    initialize: fn(PVOID),
    insert: fn(PVOID, &mut Element, &mut u8) -> PVOID,
    lookup: fn(PVOID, &mut Element) -> PVOID,
    delete: fn(PVOID, &mut Element) -> BOOLEAN,
    next: fn(PVOID, bool) -> PVOID,
    next_from: fn(PVOID, &mut PVOID) -> PVOID,
    get: fn(PVOID, u32) -> PVOID,
    count: fn(PVOID) -> u32,
    is_empty: fn(PVOID) -> BOOLEAN,
    /// Set if elements are numbered in their order rather than in insertion order.
    is_ordered: bool,
}

/// Defines a kind of table with the routines that the parentheses name.
macro_rules! kind {
    (
        $name:ident, is_ordered: $is_ordered:literal, $initialize:ident, $insert:ident, $lookup:ident,
        $delete:ident, $next:ident, $next_from:ident, $get:ident, $count:ident, $is_empty:ident
    ) => {
        const $name: Kind = Kind {
            initialize: |table| {
                call!($initialize, table, Some(compare), Some(allocate), Some(free), pointer(5));
            },
            insert: |table, number, is_new| call!($insert, table, number, SIZE, is_new),
            lookup: |table, number| call!($lookup, table, number),
            delete: |table, number| call!($delete, table, number),
            next: |table, restarts| call!($next, table, restarts),
            next_from: |table, key| call!($next_from, table, key),
            get: |table, index| call!($get, table, index),
            count: |table| call!($count, table),
            is_empty: |table| call!($is_empty, table),
            is_ordered: $is_ordered,
        };
    };
}

kind!(
    AVL, is_ordered: true, RtlInitializeGenericTableAvl, RtlInsertElementGenericTableAvl,
    RtlLookupElementGenericTableAvl, RtlDeleteElementGenericTableAvl, RtlEnumerateGenericTableAvl,
    RtlEnumerateGenericTableWithoutSplayingAvl, RtlGetElementGenericTableAvl,
    RtlNumberGenericTableElementsAvl, RtlIsGenericTableEmptyAvl
);
kind!(
    SPLAY, is_ordered: false, RtlInitializeGenericTable, RtlInsertElementGenericTable,
    RtlLookupElementGenericTable, RtlDeleteElementGenericTable, RtlEnumerateGenericTable,
    RtlEnumerateGenericTableWithoutSplaying, RtlGetElementGenericTable,
    RtlNumberGenericTableElements, RtlIsGenericTableEmpty
);

pub fn run() {
    for kind in [AVL, SPLAY] {
        fill_and_empty(&kind);
    }
    searches();
    balance();
}

/// The numbers from 0 to 198, in a shuffled order.
fn numbers() -> impl Iterator<Item = u32> {
    (0..199_u32).map(|number| number * 71 % 199)
}

fn fill_and_empty(kind: &Kind) {
    let mut table = [0xEE_u64; 13];
    let table = at(&mut table);
    (kind.initialize)(table);
    same!((kind.is_empty)(table), true);
    same!((kind.next)(table, true), 0);
    let mut is_new = 0_u8;
    for mut number in numbers() {
        let element = (kind.insert)(table, &mut number, &mut is_new);
        same!((value(element), is_new) == (number, 1), true);
    }
    let mut number = 100_u32;
    let known = (kind.insert)(table, &mut number, &mut is_new);
    same!((value(known), is_new) == (100, 0), true);
    same!((kind.lookup)(table, &mut number), known);
    number = 1000;
    same!((kind.lookup)(table, &mut number), 0);
    same!((kind.count)(table), 199);
    same!(ALLOCATED.load(Ordering::Relaxed), 199);
    let fifth = numbers().nth(5).unwrap_or(0);
    same!(value((kind.get)(table, 5)), if kind.is_ordered { 5 } else { fifth });
    same!((kind.get)(table, 199), 0);
    let (mut key, mut expected) = (NULL, 0);
    loop {
        let element = (kind.next_from)(table, &mut key);
        if element.is_null() {
            break;
        }
        same!(value(element), expected);
        expected += 1;
    }
    same!(expected, 199);
    // Every third element is deleted, and the other elements stay in order.
    for mut number in numbers().filter(|number| number % 3 == 0) {
        same!((kind.delete)(table, &mut number), true);
        same!((kind.delete)(table, &mut number), false);
    }
    let mut element = (kind.next)(table, true);
    let mut left = (0..199_u32).filter(|number| number % 3 != 0);
    while !element.is_null() {
        same!(value(element), left.next().unwrap_or(9999));
        element = (kind.next)(table, false);
    }
    same!(left.next().is_none(), true);
    loop {
        let first = (kind.next)(table, true);
        if first.is_null() {
            break;
        }
        let mut number = value(first);
        same!((kind.delete)(table, &mut number), true);
    }
    same!((kind.is_empty)(table), true);
    same!(ALLOCATED.load(Ordering::Relaxed), 0);
}

/// Inserts an element at the position at which a search ended, and deletes a node.
fn searches() {
    let mut table = [0_u64; 13];
    let table = at(&mut table);
    (AVL.initialize)(table);
    let (mut node, mut result, mut is_new) = (NULL, 9_u32, 0_u8);
    for (mut number, expected) in [(5_u32, 0), (3, 2), (7, 3)] {
        let found =
            call!(RtlLookupElementGenericTableFullAvl, table, &mut number, &mut node, &mut result);
        same!((found.is_null(), result) == (true, expected), true);
        let element = call!(
            RtlInsertElementGenericTableFullAvl, table, &mut number, SIZE, &mut is_new, node,
            result
        );
        same!(value(element), number);
    }
    let (mut number, mut key) = (7_u32, NULL);
    let found = call!(RtlLookupFirstMatchingElementGenericTableAvl, table, &mut number, &mut key);
    same!((value(found), found.addr() - key.addr()) == (7, 32), true);
    call!(RtlDeleteElementGenericTableAvlEx, table, key);
    same!(call!(RtlNumberGenericTableElementsAvl, table), 2);
    for mut number in [5_u32, 3] {
        call!(RtlDeleteElementGenericTableAvl, table, &mut number);
    }
    same!(ALLOCATED.load(Ordering::Relaxed), 0);
}

/// Returns the height of a node's tree, checking that its balances match the heights.
fn height(node: u64) -> i64 {
    if node == 0 {
        return 0;
    }
    // SAFETY: the node belongs to a tree in this driver's memory, and starts with the links and the
    // balance.
    let links = unsafe { (node as *const [u64; 4]).read() };
    let (left, right) = (height(links[1]), height(links[2]));
    let balance = i64::from(links[3].to_le_bytes()[0].cast_signed());
    if right - left != balance || !(-1..=1).contains(&balance) {
        wdk::println!("FAILED balance {balance} of {left} and {right}");
    }
    1 + left.max(right)
}

/// Checks the tree after each change.
fn balance() {
    let mut table = [0_u64; 13];
    let first = table.as_mut_ptr();
    let table = at(&mut table);
    (AVL.initialize)(table);
    let check = || {
        // SAFETY: the root is the right child of the first links.
        let root = unsafe { first.wrapping_add(2).read_volatile() };
        // SAFETY: the depth is also in the table.
        let depth = unsafe { first.wrapping_add(6).read_volatile() };
        same!(height(root), depth & 0xFFFF_FFFF);
    };
    for mut number in numbers().take(100) {
        call!(RtlInsertElementGenericTableAvl, table, &mut number, SIZE, NULL);
        check();
    }
    for mut number in numbers().take(100) {
        (AVL.delete)(table, &mut number);
        check();
    }
}

/// Frees a node that is in a table, and continues to search.
pub fn node_freed() {
    let mut table = [0_u64; 13];
    let table = at(&mut table);
    (AVL.initialize)(table);
    let mut number = 5_u32;
    let element = call!(RtlInsertElementGenericTableAvl, table, &mut number, SIZE, NULL);
    call!(ExFreePoolWithTag, element.wrapping_byte_sub(32), 0);
    number = 7;
    call!(RtlLookupElementGenericTableAvl, table, &mut number);
}
