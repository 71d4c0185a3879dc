//! Splay trees, and tables implemented as splay trees (`RTL_GENERIC_TABLE`).

use super::{
    Found, Table, Walk, delete, element, enumerate_from, insert, insert_full, lookup, lookup_full,
    search,
};
use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::abi::{SplayLinks, SplayTable},
    services::ntoskrnl::{
        context::{Context, Entries},
        ke::spin_locks::{insert_between, unlink},
    },
};

pub const ENTRIES: Entries = &[
    routine("RtlSplay", splay),
    routine("RtlDelete", delete_links),
    routine("RtlRealSuccessor", successor),
    routine("RtlRealPredecessor", predecessor),
    routine("RtlInitializeGenericTable", initialize),
    routine("RtlInsertElementGenericTable", insert::<Splay>),
    routine("RtlInsertElementGenericTableFull", insert_full::<Splay>),
    routine("RtlDeleteElementGenericTable", delete::<Splay>),
    routine("RtlLookupElementGenericTable", lookup::<Splay>),
    routine("RtlLookupElementGenericTableFull", lookup_full::<Splay>),
    routine("RtlEnumerateGenericTable", enumerate),
    routine("RtlEnumerateGenericTableWithoutSplaying", enumerate_from::<Splay>),
    routine("RtlGetElementGenericTable", get_element),
    routine("RtlNumberGenericTableElements", count),
    routine("RtlIsGenericTableEmpty", is_empty),
];

/// The offset of a node's link in insertion order.
const ORDER: u64 = size_of::<SplayLinks>() as u64;
/// The offsets of a table's root and of its list in insertion order.
const ROOT: u64 = std::mem::offset_of!(SplayTable, table_root) as u64;
const LIST: u64 = std::mem::offset_of!(SplayTable, insert_order_list) as u64;

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
    links(context, parent).left_child == node
}

/// Rotates a node up, so that it becomes the parent of its parent.
fn rotate_up(context: &Context, node: u64) {
    let Some(down) = parent(context, node) else {
        return;
    };
    let above = parent(context, down);
    let left = is_left(context, down, node);
    let of_node = links(context, node);
    let inner = if left { of_node.right_child } else { of_node.left_child };
    change(context, down, |links| {
        if left {
            links.left_child = inner;
        } else {
            links.right_child = inner;
        }
        links.parent = node;
    });
    if inner != 0 {
        change(context, inner, |links| links.parent = down);
    }
    change(context, node, |links| {
        if left {
            links.right_child = down;
        } else {
            links.left_child = down;
        }
        links.parent = above.unwrap_or(node);
    });
    if let Some(above) = above {
        change(context, above, |links| {
            if links.left_child == down {
                links.left_child = node;
            } else {
                links.right_child = node;
            }
        });
    }
}

/// Moves a node to the root. Returns the node.
fn splay(context: &Context, node: At<SplayLinks>) -> At<SplayLinks> {
    let mut walk = Walk::default();
    while let Some(up) = parent(context, node.0) {
        walk.step(context);
        if let Some(above) = parent(context, up) {
            let is_straight = is_left(context, up, node.0) == is_left(context, above, up);
            rotate_up(context, if is_straight { up } else { node.0 });
        }
        rotate_up(context, node.0);
    }
    node
}

/// Returns the leftmost or rightmost node of a subtree.
fn last(context: &Context, from: u64, towards_left: bool) -> u64 {
    let mut walk = Walk::default();
    let mut node = from;
    loop {
        let of_node = links(context, node);
        let child = if towards_left { of_node.left_child } else { of_node.right_child };
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
    let child = if before { of_node.left_child } else { of_node.right_child };
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

fn successor(context: &Context, node: At<SplayLinks>) -> At<SplayLinks> {
    At::new(neighbour(context, node.0, false))
}

fn predecessor(context: &Context, node: At<SplayLinks>) -> At<SplayLinks> {
    At::new(neighbour(context, node.0, true))
}

/// Removes a node from its tree. Returns the root, or null if the tree is now empty.
fn delete_links(context: &Context, node: At<SplayLinks>) -> At<SplayLinks> {
    splay(context, node);
    let SplayLinks { left_child: left, right_child: right, .. } = links(context, node.0);
    for root in [left, right].into_iter().filter(|root| *root != 0) {
        change(context, root, |links| links.parent = root);
    }
    if left == 0 || right == 0 {
        return At::new(left | right);
    }
    let top = last(context, left, false);
    splay(context, At::new(top));
    change(context, top, |links| links.right_child = right);
    change(context, right, |links| links.parent = top);
    At::new(top)
}

fn initialize(
    context: &Context,
    table: At<SplayTable>,
    compare: Callback,
    allocate: Callback,
    free: Callback,
    table_context: Memory,
) {
    let value = SplayTable {
        table_root: 0,
        insert_order_list: [table.0.wrapping_add(LIST); 2],
        ordered_pointer: table.0.wrapping_add(LIST),
        which_ordered_element: 0,
        number_generic_table_elements: 0,
        compare_routine: compare.0,
        allocate_routine: allocate.0,
        free_routine: free.0,
        table_context: table_context.0,
    };
    table.write(context, value);
}

fn fields(context: &Context, table: u64) -> SplayTable {
    context.read(table)
}

/// Sets the root, and changes the number of elements.
fn set(context: &Context, table: u64, root: u64, change: i32) {
    let mut value = fields(context, table);
    value.table_root = root;
    value.number_generic_table_elements =
        value.number_generic_table_elements.wrapping_add_signed(change);
    context.write(table, &value);
}

/// The table functions for splay trees.
struct Splay;

impl Table for Splay {
    type Header = SplayTable;

    const DATA: u64 = ORDER + 16;

    fn allocator(context: &Context, table: u64) -> [u64; 2] {
        let SplayTable { allocate_routine: allocate, free_routine: free, .. } =
            fields(context, table);
        [allocate, free]
    }

    /// Searches for an element. If a node is found, it becomes the root.
    fn find(context: &Context, table: u64, element: u64) -> Found {
        let value = fields(context, table);
        let places = [table, value.compare_routine, value.table_root];
        let found = search(context, places, Self::DATA, element, |node| {
            let links = links(context, node);
            [links.left_child, links.right_child]
        });
        if let Found::Node(node) = found {
            let root = splay(context, At::new(node)).0;
            context.write(table.wrapping_add(ROOT), &root);
        }
        found
    }

    fn add(context: &Context, table: u64, node: u64, place: Found) {
        let parent = match place {
            Found::Left(parent) | Found::Right(parent) => parent,
            _ => node,
        };
        context.write(node, &SplayLinks { parent, left_child: 0, right_child: 0 });
        match place {
            Found::Left(parent) => change(context, parent, |links| links.left_child = node),
            Found::Right(parent) => change(context, parent, |links| links.right_child = node),
            _ => {}
        }
        let list = table.wrapping_add(LIST);
        let [_, before]: [u64; 2] = context.read(list);
        insert_between(context, node.wrapping_add(ORDER), before, list);
        set(context, table, splay(context, At::new(node)).0, 1);
    }

    fn take(context: &Context, table: u64, node: u64) {
        let root = delete_links(context, At::new(node));
        unlink(context, node.wrapping_add(ORDER));
        set(context, table, root.0, -1);
    }

    fn next(context: &Context, table: u64, node: u64) -> u64 {
        match (fields(context, table).table_root, node) {
            (0, _) => 0,
            (root, 0) => last(context, root, true),
            _ => successor(context, At::new(node)).0,
        }
    }
}

/// Returns the first element, or the element after the root. The element's node becomes the root.
fn enumerate(context: &Context, table: At<SplayTable>, restart: bool) -> Memory {
    let root = fields(context, table.0).table_root;
    if root == 0 {
        return At::NULL;
    }
    let next =
        if restart { last(context, root, true) } else { successor(context, At::new(root)).0 };
    if next != 0 {
        let root = splay(context, At::new(next)).0;
        context.write(table.0.wrapping_add(ROOT), &root);
    }
    At::new(element::<Splay>(next))
}

/// Returns the element at this index in insertion order.
fn get_element(context: &Context, table: At<SplayTable>, number: u32) -> Memory {
    if number >= fields(context, table.0).number_generic_table_elements {
        return At::NULL;
    }
    let mut at: u64 = context.read(table.0.wrapping_add(LIST));
    for _ in 0..number {
        at = context.read(at);
    }
    At::new(at.wrapping_sub(ORDER).wrapping_add(Splay::DATA))
}

fn count(context: &Context, table: At<SplayTable>) -> u32 {
    fields(context, table.0).number_generic_table_elements
}

fn is_empty(context: &Context, table: At<SplayTable>) -> bool {
    fields(context, table.0).table_root == 0
}
