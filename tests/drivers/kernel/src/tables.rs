//! Tables of elements: AVL trees and splay trees.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::call::{Routine, address, at, call, low, same};

/// The elements are numbers.
type Element = u32;

const SIZE: u64 = size_of::<Element>() as u64;

static ALLOCATED: AtomicU32 = AtomicU32::new(0);

const fn value(element: u64) -> u32 {
    // SAFETY: the kernel passes an element, or a buffer with one.
    unsafe { (element as *const Element).read() }
}

unsafe extern "C" fn compare(_table: u64, one: u64, other: u64) -> u32 {
    match value(one).cmp(&value(other)) {
        core::cmp::Ordering::Less => 0,
        core::cmp::Ordering::Greater => 1,
        core::cmp::Ordering::Equal => 2,
    }
}

unsafe extern "C" fn allocate(_table: u64, size: u32) -> u64 {
    ALLOCATED.fetch_add(1, Ordering::Relaxed);
    call!("ExAllocatePool2", 0x40, size, 0x7473_6574)
}

unsafe extern "C" fn free(_table: u64, node: u64) {
    ALLOCATED.fetch_sub(1, Ordering::Relaxed);
    call!("ExFreePoolWithTag", node, 0);
}

/// The routines for one kind of table.
struct Kind {
    initialize: &'static str,
    insert: &'static str,
    lookup: &'static str,
    delete: &'static str,
    next: &'static str,
    next_from: &'static str,
    get: &'static str,
    count: &'static str,
    is_empty: &'static str,
    /// Set if elements are numbered in their order rather than in insertion order.
    is_ordered: bool,
}

const AVL: Kind = Kind {
    initialize: "RtlInitializeGenericTableAvl",
    insert: "RtlInsertElementGenericTableAvl",
    lookup: "RtlLookupElementGenericTableAvl",
    delete: "RtlDeleteElementGenericTableAvl",
    next: "RtlEnumerateGenericTableAvl",
    next_from: "RtlEnumerateGenericTableWithoutSplayingAvl",
    get: "RtlGetElementGenericTableAvl",
    count: "RtlNumberGenericTableElementsAvl",
    is_empty: "RtlIsGenericTableEmptyAvl",
    is_ordered: true,
};

const SPLAY: Kind = Kind {
    initialize: "RtlInitializeGenericTable",
    insert: "RtlInsertElementGenericTable",
    lookup: "RtlLookupElementGenericTable",
    delete: "RtlDeleteElementGenericTable",
    next: "RtlEnumerateGenericTable",
    next_from: "RtlEnumerateGenericTableWithoutSplaying",
    get: "RtlGetElementGenericTable",
    count: "RtlNumberGenericTableElements",
    is_empty: "RtlIsGenericTableEmpty",
    is_ordered: false,
};

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

fn initialize(name: &str, table: u64) {
    let [compare, allocate, free] = [
        address(compare as *const c_void),
        address(allocate as *const c_void),
        address(free as *const c_void),
    ];
    Routine::find(name).call(&[table, compare, allocate, free, 5]);
}

fn fill_and_empty(kind: &Kind) {
    let mut table = [0xEE_u64; 13];
    let table = at(&mut table);
    initialize(kind.initialize, table);
    let find = Routine::find;
    let [insert, lookup, delete] = [kind.insert, kind.lookup, kind.delete].map(find);
    let [next, next_from, get] = [kind.next, kind.next_from, kind.get].map(find);
    let [count, is_empty] = [kind.count, kind.is_empty].map(find);
    same!(is_empty.call(&[table]) & 0xFF, 1);
    same!(next.call(&[table, 1]), 0);
    let mut is_new = 0_u8;
    for mut number in numbers() {
        let element = insert.call(&[table, at(&mut number), SIZE, at(&mut is_new)]);
        same!((value(element), is_new) == (number, 1), true);
    }
    let mut number = 100_u32;
    let known = insert.call(&[table, at(&mut number), SIZE, at(&mut is_new)]);
    same!((value(known), is_new) == (100, 0), true);
    same!(lookup.call(&[table, at(&mut number)]), known);
    number = 1000;
    same!(lookup.call(&[table, at(&mut number)]), 0);
    same!(low(count.call(&[table])), 199);
    same!(ALLOCATED.load(Ordering::Relaxed), 199);
    let fifth = numbers().nth(5).unwrap_or(0);
    same!(value(get.call(&[table, 5])), if kind.is_ordered { 5 } else { fifth });
    same!(get.call(&[table, 199]), 0);
    let (mut key, mut expected) = (0_u64, 0);
    loop {
        let element = next_from.call(&[table, at(&mut key)]);
        if element == 0 {
            break;
        }
        same!(value(element), expected);
        expected += 1;
    }
    same!(expected, 199);
    // Every third element is deleted, and the other elements stay in order.
    for mut number in numbers().filter(|number| number % 3 == 0) {
        same!(delete.call(&[table, at(&mut number)]) & 0xFF, 1);
        same!(delete.call(&[table, at(&mut number)]) & 0xFF, 0);
    }
    let mut element = next.call(&[table, 1]);
    let mut left = (0..199_u32).filter(|number| number % 3 != 0);
    while element != 0 {
        same!(value(element), left.next().unwrap_or(9999));
        element = next.call(&[table, 0]);
    }
    same!(left.next().is_none(), true);
    loop {
        let first = next.call(&[table, 1]);
        if first == 0 {
            break;
        }
        let mut number = value(first);
        same!(delete.call(&[table, at(&mut number)]) & 0xFF, 1);
    }
    same!(is_empty.call(&[table]) & 0xFF, 1);
    same!(ALLOCATED.load(Ordering::Relaxed), 0);
}

/// Inserts an element at the position at which a search ended, and deletes a node.
fn searches() {
    let mut table = [0_u64; 13];
    let table = at(&mut table);
    initialize(AVL.initialize, table);
    let (mut node, mut result, mut is_new) = (0_u64, 9_u32, 0_u8);
    for (mut number, expected) in [(5_u32, 0), (3, 2), (7, 3)] {
        let found = call!(
            "RtlLookupElementGenericTableFullAvl",
            table,
            at(&mut number),
            at(&mut node),
            at(&mut result)
        );
        same!((found, result) == (0, expected), true);
        let element = call!(
            "RtlInsertElementGenericTableFullAvl",
            table,
            at(&mut number),
            SIZE,
            at(&mut is_new),
            node,
            result
        );
        same!(value(element), number);
    }
    let (mut number, mut key) = (7_u32, 0_u64);
    let found =
        call!("RtlLookupFirstMatchingElementGenericTableAvl", table, at(&mut number), at(&mut key));
    same!((value(found), found - key) == (7, 32), true);
    call!("RtlDeleteElementGenericTableAvlEx", table, key);
    same!(low(call!("RtlNumberGenericTableElementsAvl", table)), 2);
    for mut number in [5_u32, 3] {
        call!("RtlDeleteElementGenericTableAvl", table, at(&mut number));
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
    initialize(AVL.initialize, table);
    let insert = Routine::find(AVL.insert);
    let delete = Routine::find(AVL.delete);
    let check = || {
        // SAFETY: the root is the right child of the first links.
        let root = unsafe { first.wrapping_add(2).read_volatile() };
        // SAFETY: the depth is also in the table.
        let depth = unsafe { first.wrapping_add(6).read_volatile() };
        same!(height(root), depth & 0xFFFF_FFFF);
    };
    for mut number in numbers().take(100) {
        insert.call(&[table, at(&mut number), SIZE, 0]);
        check();
    }
    for mut number in numbers().take(100) {
        delete.call(&[table, at(&mut number)]);
        check();
    }
}

/// Frees a node that is in a table, and continues to search.
pub fn node_freed() {
    let mut table = [0_u64; 13];
    let table = at(&mut table);
    initialize(AVL.initialize, table);
    let mut number = 5_u32;
    let element = call!("RtlInsertElementGenericTableAvl", table, at(&mut number), SIZE, 0);
    call!("ExFreePoolWithTag", element - 32, 0);
    number = 7;
    call!("RtlLookupElementGenericTableAvl", table, at(&mut number));
}
