//! Splay trees, and the tables that are such trees (`RTL_GENERIC_TABLE`).

use super::{Found, Walk, search, store_boolean};
use crate::{
    execution::routine::{Routine, low_byte, low_half},
    ground::{
        executive_abi::{SplayLinks, SplayTable},
        irql::Irql,
        memory,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::spin_locks::{insert_between, unlink},
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlSplay", HIGH, Routine::One(splay)),
    ("RtlDelete", HIGH, Routine::One(delete_links)),
    ("RtlRealSuccessor", HIGH, Routine::One(successor)),
    ("RtlRealPredecessor", HIGH, Routine::One(predecessor)),
    ("RtlInitializeGenericTable", DISPATCH, Routine::Five(initialize)),
    ("RtlInsertElementGenericTable", DISPATCH, Routine::Four(insert)),
    ("RtlInsertElementGenericTableFull", DISPATCH, Routine::Six(insert_full)),
    ("RtlDeleteElementGenericTable", DISPATCH, Routine::Two(delete)),
    ("RtlLookupElementGenericTable", DISPATCH, Routine::Two(lookup)),
    ("RtlLookupElementGenericTableFull", DISPATCH, Routine::Four(lookup_full)),
    ("RtlEnumerateGenericTable", DISPATCH, Routine::Two(enumerate)),
    ("RtlEnumerateGenericTableWithoutSplaying", DISPATCH, Routine::Two(enumerate_from)),
    ("RtlGetElementGenericTable", DISPATCH, Routine::Two(get_element)),
    ("RtlNumberGenericTableElements", DISPATCH, Routine::One(count)),
    ("RtlIsGenericTableEmpty", DISPATCH, Routine::One(is_empty)),
];

/// The offsets of a node's link in the order of insertions and of its element.
const ORDER: u64 = size_of::<SplayLinks>() as u64;
const DATA: u64 = ORDER + 16;
/// The offsets of a table's root and of its list in the order of insertions.
const ROOT: u64 = std::mem::offset_of!(SplayTable, root) as u64;
const LIST: u64 = std::mem::offset_of!(SplayTable, insertions) as u64;

fn links(context: &Context, node: u64) -> SplayLinks {
    context.read(node)
}

fn change(context: &Context, node: u64, body: impl FnOnce(&mut SplayLinks)) {
    let mut value = links(context, node);
    body(&mut value);
    context.write(node, &value);
}

/// Returns a node's parent, or `None` for a root, which is its own parent.
fn parent(context: &Context, node: u64) -> Option<u64> {
    Some(links(context, node).parent).filter(|parent| *parent != node)
}

fn is_left(context: &Context, parent: u64, node: u64) -> bool {
    links(context, parent).left == node
}

/// Makes a node the parent of its parent.
fn rotate_up(context: &Context, node: u64) {
    let Some(down) = parent(context, node) else {
        return;
    };
    let above = parent(context, down);
    let left = is_left(context, down, node);
    let of_node = links(context, node);
    let inner = if left { of_node.right } else { of_node.left };
    change(context, down, |links| {
        if left {
            links.left = inner;
        } else {
            links.right = inner;
        }
        links.parent = node;
    });
    if inner != 0 {
        change(context, inner, |links| links.parent = down);
    }
    change(context, node, |links| {
        if left {
            links.right = down;
        } else {
            links.left = down;
        }
        links.parent = above.unwrap_or(node);
    });
    if let Some(above) = above {
        change(context, above, |links| {
            if links.left == down {
                links.left = node;
            } else {
                links.right = node;
            }
        });
    }
}

/// Makes a node the root. Returns it.
fn splay(context: &Context, node: u64) -> u64 {
    let mut walk = Walk::default();
    while let Some(up) = parent(context, node) {
        walk.step(context);
        if let Some(above) = parent(context, up) {
            let is_straight = is_left(context, up, node) == is_left(context, above, up);
            rotate_up(context, if is_straight { up } else { node });
        }
        rotate_up(context, node);
    }
    node
}

/// Returns the last node of a subtree towards the left or the right.
fn last(context: &Context, from: u64, towards_left: bool) -> u64 {
    let mut walk = Walk::default();
    let mut node = from;
    loop {
        let of_node = links(context, node);
        let child = if towards_left { of_node.left } else { of_node.right };
        if child == 0 {
            return node;
        }
        node = child;
        walk.step(context);
    }
}

/// Returns the node before or after a node, or null.
fn neighbour(context: &Context, node: u64, before: bool) -> u64 {
    let of_node = links(context, node);
    let child = if before { of_node.left } else { of_node.right };
    if child != 0 {
        return last(context, child, !before);
    }
    let mut walk = Walk::default();
    let mut node = node;
    while let Some(up) = parent(context, node) {
        walk.step(context);
        if is_left(context, up, node) != before {
            return up;
        }
        node = up;
    }
    0
}

fn successor(context: &Context, node: u64) -> u64 {
    neighbour(context, node, false)
}

fn predecessor(context: &Context, node: u64) -> u64 {
    neighbour(context, node, true)
}

/// Takes a node out of its tree. Returns the root, or null for a tree that is empty then.
fn delete_links(context: &Context, node: u64) -> u64 {
    splay(context, node);
    let SplayLinks { left, right, .. } = links(context, node);
    for root in [left, right].into_iter().filter(|root| *root != 0) {
        change(context, root, |links| links.parent = root);
    }
    if left == 0 || right == 0 {
        return left | right;
    }
    let top = last(context, left, false);
    splay(context, top);
    change(context, top, |links| links.right = right);
    change(context, right, |links| links.parent = top);
    top
}

fn initialize(
    context: &Context,
    table: u64,
    compare: u64,
    allocate: u64,
    free: u64,
    its_context: u64,
) -> u64 {
    let value = SplayTable {
        root: 0,
        insertions: [table.wrapping_add(LIST); 2],
        ordered: table.wrapping_add(LIST),
        which: 0,
        count: 0,
        compare,
        allocate,
        free,
        context: its_context,
    };
    context.write(table, &value);
    0
}

fn fields(context: &Context, table: u64) -> SplayTable {
    context.read(table)
}

/// Changes the number of elements and the root.
fn set(context: &Context, table: u64, root: u64, change: i32) {
    let mut value = fields(context, table);
    value.root = root;
    value.count = value.count.wrapping_add_signed(change);
    context.write(table, &value);
}

/// Searches an element. A node that is found becomes the root.
fn find(context: &Context, table: u64, element: u64) -> Found {
    let value = fields(context, table);
    let places = [table, value.compare, value.root];
    let found = search(context, places, DATA, element, |node| {
        let links = links(context, node);
        [links.left, links.right]
    });
    if let Found::Node(node) = found {
        let root = splay(context, node);
        context.write(table.wrapping_add(ROOT), &root);
    }
    found
}

/// Returns the address of a node's element, or null without a node.
const fn element(node: u64) -> u64 {
    if node == 0 { 0 } else { node.wrapping_add(DATA) }
}

fn insert(context: &Context, table: u64, buffer: u64, size: u64, is_new: u64) -> u64 {
    let place = find(context, table, buffer);
    insert_at(context, table, buffer, size, is_new, place)
}

fn insert_full(
    context: &Context,
    table: u64,
    buffer: u64,
    size: u64,
    is_new: u64,
    node: u64,
    result: u64,
) -> u64 {
    let place = Found::from_parts(context, node, low_half(result));
    insert_at(context, table, buffer, size, is_new, place)
}

/// Copies an element into a new node, unless the table has an equal one.
fn insert_at(
    context: &Context,
    table: u64,
    buffer: u64,
    size: u64,
    is_new: u64,
    place: Found,
) -> u64 {
    if let Found::Node(node) = place {
        store_boolean(context, is_new, false);
        return element(node);
    }
    let size = low_half(size);
    let bytes = memory::read_bytes(buffer, usize::try_from(size).unwrap_or(0));
    let bytes = context.checked(bytes);
    let whole = u64::from(size).wrapping_add(DATA);
    let allocate = fields(context, table).allocate;
    let node = context.call_driver("the table's allocation routine", allocate, [table, whole]);
    store_boolean(context, is_new, node != 0);
    if node == 0 {
        return 0;
    }
    let parent = match place {
        Found::Left(parent) | Found::Right(parent) => parent,
        _ => node,
    };
    let value = SplayLinks { parent, left: 0, right: 0 };
    context.write(node, &value);
    match place {
        Found::Left(parent) => change(context, parent, |links| links.left = node),
        Found::Right(parent) => change(context, parent, |links| links.right = node),
        _ => {}
    }
    let list = table.wrapping_add(LIST);
    let [_, before]: [u64; 2] = context.read(list);
    insert_between(context, node.wrapping_add(ORDER), before, list);
    context.write_bytes(element(node), &bytes);
    let root = splay(context, node);
    set(context, table, root, 1);
    element(node)
}

fn delete(context: &Context, table: u64, buffer: u64) -> u64 {
    let Found::Node(node) = find(context, table, buffer) else {
        return 0;
    };
    let root = delete_links(context, node);
    unlink(context, node.wrapping_add(ORDER));
    set(context, table, root, -1);
    let free = fields(context, table).free;
    context.call_driver("the table's free routine", free, [table, node]);
    1
}

fn lookup(context: &Context, table: u64, buffer: u64) -> u64 {
    match find(context, table, buffer) {
        Found::Node(node) => element(node),
        _ => 0,
    }
}

fn lookup_full(context: &Context, table: u64, buffer: u64, node_at: u64, result_at: u64) -> u64 {
    let found = find(context, table, buffer);
    found.store(context, node_at, result_at);
    match found {
        Found::Node(node) => element(node),
        _ => 0,
    }
}

/// Returns the first element, or that after the root's. Its node becomes the root.
fn enumerate(context: &Context, table: u64, restart: u64) -> u64 {
    let root = fields(context, table).root;
    if root == 0 {
        return 0;
    }
    let next =
        if low_byte(restart) == 0 { successor(context, root) } else { last(context, root, true) };
    if next != 0 {
        let root = splay(context, next);
        context.write(table.wrapping_add(ROOT), &root);
    }
    element(next)
}

/// Returns the element after that of a key, which is a node or null for the first element.
fn enumerate_from(context: &Context, table: u64, key: u64) -> u64 {
    let root = fields(context, table).root;
    let next = match context.read::<u64>(key) {
        _ if root == 0 => 0,
        0 => last(context, root, true),
        node => successor(context, node),
    };
    if next != 0 {
        context.write(key, &next);
    }
    element(next)
}

/// Returns an element by its number in the order of the insertions.
fn get_element(context: &Context, table: u64, number: u64) -> u64 {
    let number = low_half(number);
    if number >= fields(context, table).count {
        return 0;
    }
    let mut at: u64 = context.read(table.wrapping_add(LIST));
    for _ in 0..number {
        at = context.read(at);
    }
    at.wrapping_sub(ORDER).wrapping_add(DATA)
}

fn count(context: &Context, table: u64) -> u64 {
    u64::from(fields(context, table).count)
}

fn is_empty(context: &Context, table: u64) -> u64 {
    u64::from(fields(context, table).root == 0)
}
