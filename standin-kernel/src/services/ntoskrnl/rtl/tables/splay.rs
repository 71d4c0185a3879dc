//! Splay trees, and tables implemented as splay trees (`RTL_GENERIC_TABLE`).

use super::{
    Found, Table, Walk, delete, element, enumerate_from, insert, insert_full, lookup, lookup_full,
    search,
};
use crate::{
    execution::routine::Routine,
    ground::{
        executive_abi::{SplayLinks, SplayTable},
        irql::Irql,
    },
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::spin_locks::{insert_between, unlink},
    },
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;
const HIGH: Irql = Irql::HIGH_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlSplay", HIGH, Routine::of(splay)),
    ("RtlDelete", HIGH, Routine::of(delete_links)),
    ("RtlRealSuccessor", HIGH, Routine::of(successor)),
    ("RtlRealPredecessor", HIGH, Routine::of(predecessor)),
    ("RtlInitializeGenericTable", DISPATCH, Routine::of(initialize)),
    ("RtlInsertElementGenericTable", DISPATCH, Routine::of(insert::<Splay>)),
    ("RtlInsertElementGenericTableFull", DISPATCH, Routine::of(insert_full::<Splay>)),
    ("RtlDeleteElementGenericTable", DISPATCH, Routine::of(delete::<Splay>)),
    ("RtlLookupElementGenericTable", DISPATCH, Routine::of(lookup::<Splay>)),
    ("RtlLookupElementGenericTableFull", DISPATCH, Routine::of(lookup_full::<Splay>)),
    ("RtlEnumerateGenericTable", DISPATCH, Routine::of(enumerate)),
    ("RtlEnumerateGenericTableWithoutSplaying", DISPATCH, Routine::of(enumerate_from::<Splay>)),
    ("RtlGetElementGenericTable", DISPATCH, Routine::of(get_element)),
    ("RtlNumberGenericTableElements", DISPATCH, Routine::of(count)),
    ("RtlIsGenericTableEmpty", DISPATCH, Routine::of(is_empty)),
];

/// The offset of a node's link in insertion order.
const ORDER: u64 = size_of::<SplayLinks>() as u64;
/// The offsets of a table's root and of its list in insertion order.
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

/// Returns a node's parent, or `None` for a root. A root's parent field points to the root itself.
fn parent(context: &Context, node: u64) -> Option<u64> {
    Some(links(context, node).parent).filter(|parent| *parent != node)
}

fn is_left(context: &Context, parent: u64, node: u64) -> bool {
    links(context, parent).left == node
}

/// Rotates a node up, so that it becomes the parent of its parent.
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

/// Moves a node to the root. Returns the node.
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

/// Returns the leftmost or rightmost node of a subtree.
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

/// Returns the previous or next node, or null.
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

/// Removes a node from its tree. Returns the root, or null if the tree is now empty.
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
) {
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
}

fn fields(context: &Context, table: u64) -> SplayTable {
    context.read(table)
}

/// Sets the root, and changes the number of elements.
fn set(context: &Context, table: u64, root: u64, change: i32) {
    let mut value = fields(context, table);
    value.root = root;
    value.count = value.count.wrapping_add_signed(change);
    context.write(table, &value);
}

/// The table functions for splay trees.
struct Splay;

impl Table for Splay {
    const DATA: u64 = ORDER + 16;

    fn allocator(context: &Context, table: u64) -> [u64; 2] {
        let SplayTable { allocate, free, .. } = fields(context, table);
        [allocate, free]
    }

    /// Searches for an element. If a node is found, it becomes the root.
    fn find(context: &Context, table: u64, element: u64) -> Found {
        let value = fields(context, table);
        let places = [table, value.compare, value.root];
        let found = search(context, places, Self::DATA, element, |node| {
            let links = links(context, node);
            [links.left, links.right]
        });
        if let Found::Node(node) = found {
            let root = splay(context, node);
            context.write(table.wrapping_add(ROOT), &root);
        }
        found
    }

    fn add(context: &Context, table: u64, node: u64, place: Found) {
        let parent = match place {
            Found::Left(parent) | Found::Right(parent) => parent,
            _ => node,
        };
        context.write(node, &SplayLinks { parent, left: 0, right: 0 });
        match place {
            Found::Left(parent) => change(context, parent, |links| links.left = node),
            Found::Right(parent) => change(context, parent, |links| links.right = node),
            _ => {}
        }
        let list = table.wrapping_add(LIST);
        let [_, before]: [u64; 2] = context.read(list);
        insert_between(context, node.wrapping_add(ORDER), before, list);
        set(context, table, splay(context, node), 1);
    }

    fn take(context: &Context, table: u64, node: u64) {
        let root = delete_links(context, node);
        unlink(context, node.wrapping_add(ORDER));
        set(context, table, root, -1);
    }

    fn next(context: &Context, table: u64, node: u64) -> u64 {
        match (fields(context, table).root, node) {
            (0, _) => 0,
            (root, 0) => last(context, root, true),
            _ => successor(context, node),
        }
    }
}

/// Returns the first element, or the element after the root. The element's node becomes the root.
fn enumerate(context: &Context, table: u64, restart: bool) -> u64 {
    let root = fields(context, table).root;
    if root == 0 {
        return 0;
    }
    let next = if restart { last(context, root, true) } else { successor(context, root) };
    if next != 0 {
        let root = splay(context, next);
        context.write(table.wrapping_add(ROOT), &root);
    }
    element::<Splay>(next)
}

/// Returns the element at this index in insertion order.
fn get_element(context: &Context, table: u64, number: u32) -> u64 {
    if number >= fields(context, table).count {
        return 0;
    }
    let mut at: u64 = context.read(table.wrapping_add(LIST));
    for _ in 0..number {
        at = context.read(at);
    }
    at.wrapping_sub(ORDER).wrapping_add(Splay::DATA)
}

fn count(context: &Context, table: u64) -> u32 {
    fields(context, table).count
}

fn is_empty(context: &Context, table: u64) -> bool {
    fields(context, table).root == 0
}
