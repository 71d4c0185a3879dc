//! Tables of elements that a driver routine compares: height-balanced trees and splay trees.
//!
//! As on Windows, the trees are in the driver's memory, so walking a tree detects elements that
//! were freed or overwritten.

pub mod avl;
pub mod splay;

use crate::{
    execution::routine::{At, Memory},
    ground::abi::Pointee,
    services::ntoskrnl::context::Context,
};

/// A kind of table. The functions receive the address of a table; the node address 0 means no node.
trait Table {
    /// The structure of a table.
    type Header: Pointee;

    /// The offset of an element in its node.
    const DATA: u64;

    /// Returns the driver's routines that allocate and free nodes.
    fn allocator(context: &Context, table: u64) -> [u64; 2];

    /// Searches for an element.
    fn find(context: &Context, table: u64, element: u64) -> Found;

    /// Inserts a node at the position at which a search ended.
    fn add(context: &Context, table: u64, node: u64, place: Found);

    /// Removes a node from its table.
    fn take(context: &Context, table: u64, node: u64);

    /// Returns the node after `node` or, if it is 0, the first node.
    fn next(context: &Context, table: u64, node: u64) -> u64;
}

/// The result of a search (`TABLE_SEARCH_RESULT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    EmptyTree,
    Node(u64),
    /// The element belongs at the left child of this node.
    Left(u64),
    /// The element belongs at the right child of this node.
    Right(u64),
}

impl Found {
    /// Returns the node or its parent, and the `TABLE_SEARCH_RESULT` value.
    const fn parts(self) -> (u64, u32) {
        match self {
            Self::EmptyTree => (0, 0),
            Self::Node(node) => (node, 1),
            Self::Left(parent) => (parent, 2),
            Self::Right(parent) => (parent, 3),
        }
    }

    /// Converts a result that a driver passes back.
    fn from_parts(context: &Context, node: u64, result: u32) -> Self {
        match result {
            0 => Self::EmptyTree,
            1 => Self::Node(node),
            2 => Self::Left(node),
            3 => Self::Right(node),
            _ => context.stop_for_misuse(&format!("with the search result {result}")),
        }
    }

    /// Returns the node that was found, or 0.
    const fn node(self) -> u64 {
        match self {
            Self::Node(node) => node,
            _ => 0,
        }
    }
}

/// The order of two elements (`RTL_GENERIC_COMPARE_RESULTS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    Greater,
    Equal,
}

/// Compares two elements by calling the driver's routine.
fn compare(context: &Context, routine: u64, table: u64, one: u64, other: u64) -> Order {
    let what = "the table's comparison routine";
    let result = context.call_driver(what, routine, [table, one, other]);
    match result & 0xFFFF_FFFF {
        0 => Order::Less,
        1 => Order::Greater,
        2 => Order::Equal,
        other => context
            .stop_for_misuse(&format!("for a table whose comparison routine returned {other}")),
    }
}

/// Searches from a root. `links` returns a node's children; `data` is the element's offset in its
/// node.
fn search(
    context: &Context,
    [table, routine, root]: [u64; 3],
    data: u64,
    element: u64,
    links: impl Fn(u64) -> [u64; 2],
) -> Found {
    if root == 0 {
        return Found::EmptyTree;
    }
    let mut node = root;
    let mut walk = Walk::default();
    loop {
        let order = compare(context, routine, table, element, node.wrapping_add(data));
        let [left, right] = links(node);
        let (child, end) = match order {
            Order::Equal => return Found::Node(node),
            Order::Less => (left, Found::Left(node)),
            Order::Greater => (right, Found::Right(node)),
        };
        if child == 0 {
            return end;
        }
        node = child;
        walk.step(context);
    }
}

/// Limits a walk over links that a driver can overwrite.
#[derive(Default)]
struct Walk(u32);

impl Walk {
    fn step(&mut self, context: &Context) {
        /// A number that exceeds the number of nodes that fit in memory.
        const LIMIT: u32 = 1 << 22;
        self.0 += 1;
        if self.0 > LIMIT {
            context.stop_for_misuse("with a table whose links are corrupt: they form a cycle");
        }
    }
}

/// Returns the address of a node's element, or null if there is no node.
const fn element<T: Table>(node: u64) -> u64 {
    if node == 0 { 0 } else { node.wrapping_add(T::DATA) }
}

fn insert<T: Table>(
    context: &Context,
    table: At<T::Header>,
    buffer: Memory,
    size: u32,
    is_new: At<u8>,
) -> Memory {
    let place = T::find(context, table.0, buffer.0);
    At::new(insert_at::<T>(context, table.0, buffer.0, size, is_new, place))
}

fn insert_full<T: Table>(
    context: &Context,
    table: At<T::Header>,
    buffer: Memory,
    size: u32,
    is_new: At<u8>,
    node: Memory,
    result: u32,
) -> Memory {
    let place = Found::from_parts(context, node.0, result);
    At::new(insert_at::<T>(context, table.0, buffer.0, size, is_new, place))
}

/// Copies an element into a new node, unless the table already contains an equal element.
fn insert_at<T: Table>(
    context: &Context,
    table: u64,
    buffer: u64,
    size: u32,
    is_new: At<u8>,
    place: Found,
) -> u64 {
    if let Found::Node(node) = place {
        is_new.write_optional(context, 0);
        return element::<T>(node);
    }
    let bytes = context.read_bytes(buffer, size as usize);
    let whole = u64::from(size).wrapping_add(T::DATA);
    let [allocate, _] = T::allocator(context, table);
    let node = context.call_driver("the table's allocation routine", allocate, [table, whole]);
    is_new.write_optional(context, (node != 0).into());
    if node != 0 {
        T::add(context, table, node, place);
        context.write_bytes(element::<T>(node), &bytes);
    }
    element::<T>(node)
}

fn delete<T: Table>(context: &Context, table: At<T::Header>, buffer: Memory) -> bool {
    let found = T::find(context, table.0, buffer.0).node();
    if found != 0 {
        delete_node::<T>(context, table, At::new(found));
    }
    found != 0
}

/// Removes a node from its table, and frees the node.
fn delete_node<T: Table>(context: &Context, table: At<T::Header>, node: Memory) {
    T::take(context, table.0, node.0);
    let [_, free] = T::allocator(context, table.0);
    context.call_driver("the table's free routine", free, [table.0, node.0]);
}

fn lookup<T: Table>(context: &Context, table: At<T::Header>, buffer: Memory) -> Memory {
    At::new(element::<T>(T::find(context, table.0, buffer.0).node()))
}

fn lookup_full<T: Table>(
    context: &Context,
    table: At<T::Header>,
    buffer: Memory,
    node: At<u64>,
    result: At<u32>,
) -> Memory {
    let found = T::find(context, table.0, buffer.0);
    let (place, how) = found.parts();
    node.write(context, place);
    result.write(context, how);
    At::new(element::<T>(found.node()))
}

/// Returns the element after a restart key, which is a node, or null for the first element.
fn enumerate_from<T: Table>(context: &Context, table: At<T::Header>, key: At<u64>) -> Memory {
    let next = T::next(context, table.0, key.read(context));
    if next != 0 {
        key.write(context, next);
    }
    At::new(element::<T>(next))
}
