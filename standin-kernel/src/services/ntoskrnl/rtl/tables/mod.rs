//! Tables of elements that a driver's routine compares: trees balanced by height, and splay trees.
//!
//! The trees are in the driver's memory, as on Windows: an element that was freed, or that a driver
//! overwrote, is found as the tree is walked.

pub mod avl;
pub mod splay;

use crate::services::ntoskrnl::context::Context;

/// The result of a search, as `TABLE_SEARCH_RESULT` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    EmptyTree,
    Node(u64),
    /// The element would be the left child of this node.
    Left(u64),
    /// The element would be the right child of this node.
    Right(u64),
}

impl Found {
    /// Returns the node or its parent, and the value of `TABLE_SEARCH_RESULT`.
    const fn parts(self) -> (u64, u32) {
        match self {
            Self::EmptyTree => (0, 0),
            Self::Node(node) => (node, 1),
            Self::Left(parent) => (parent, 2),
            Self::Right(parent) => (parent, 3),
        }
    }

    /// Returns the result that a driver passes back.
    fn from_parts(context: &Context, node: u64, result: u32) -> Self {
        match result {
            0 => Self::EmptyTree,
            1 => Self::Node(node),
            2 => Self::Left(node),
            3 => Self::Right(node),
            _ => context.stop_for_misuse(&format!("with the search result {result}")),
        }
    }

    /// Stores the result of a search.
    fn store(self, context: &Context, node_at: u64, result_at: u64) {
        let (node, result) = self.parts();
        context.write(node_at, &node);
        context.write(result_at, &result);
    }
}

/// The order of two elements, as `RTL_GENERIC_COMPARE_RESULTS` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Less,
    Greater,
    Equal,
}

/// Compares two elements by the driver's routine.
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

/// Searches from a root. `links` returns a node's children, `data` is the offset of its element.
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

/// Bounds a walk over links that a driver can overwrite.
#[derive(Default)]
struct Walk(u32);

impl Walk {
    fn step(&mut self, context: &Context) {
        /// More than a tree in memory can need.
        const LIMIT: u32 = 1 << 22;
        self.0 += 1;
        if self.0 > LIMIT {
            context.stop_for_misuse("with a table whose links are corrupt: they lead in a circle");
        }
    }
}

/// Stores a `BOOLEAN` that the caller may not want.
fn store_boolean(context: &Context, at: u64, value: bool) {
    if at != 0 {
        context.write(at, &u8::from(value));
    }
}
