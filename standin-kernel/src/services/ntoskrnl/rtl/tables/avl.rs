//! Tables implemented as height-balanced trees (`RTL_AVL_TABLE`).

use super::{
    Found, Order, Table, Walk, compare, delete, delete_node, element, enumerate_from, insert,
    insert_full, lookup, lookup_full, search,
};
use crate::{
    execution::routine::{At, Callback, Memory, routine},
    ground::abi::{AvlTable, BalancedLinks},
    services::ntoskrnl::context::{Context, Entries},
};

pub const ENTRIES: Entries = &[
    routine("RtlInitializeGenericTableAvl", initialize),
    routine("RtlInsertElementGenericTableAvl", insert::<Avl>),
    routine("RtlInsertElementGenericTableFullAvl", insert_full::<Avl>),
    routine("RtlDeleteElementGenericTableAvl", delete::<Avl>),
    routine("RtlDeleteElementGenericTableAvlEx", delete_node::<Avl>),
    routine("RtlLookupElementGenericTableAvl", lookup::<Avl>),
    routine("RtlLookupElementGenericTableFullAvl", lookup_full::<Avl>),
    routine("RtlLookupFirstMatchingElementGenericTableAvl", lookup_first),
    routine("RtlEnumerateGenericTableAvl", enumerate),
    routine("RtlEnumerateGenericTableWithoutSplayingAvl", enumerate_from::<Avl>),
    routine("RtlGetElementGenericTableAvl", get_element),
    routine("RtlNumberGenericTableElementsAvl", count),
    routine("RtlIsGenericTableEmptyAvl", is_empty),
];

/// The offset of an element in its node.
const DATA: u64 = size_of::<BalancedLinks>() as u64;

fn initialize(
    context: &Context,
    table: At<AvlTable>,
    compare: Callback,
    allocate: Callback,
    free: Callback,
    table_context: Memory,
) {
    let value = AvlTable {
        balanced_root: BalancedLinks { parent: table.0, ..Default::default() },
        compare_routine: compare.0,
        allocate_routine: allocate.0,
        free_routine: free.0,
        table_context: table_context.0,
        ..Default::default()
    };
    table.write(context, value);
}

/// The table functions for height-balanced trees.
struct Avl;

/// A table's tree. The parent of the root is the table itself, and the root is the table's right
/// child.
#[derive(Clone, Copy)]
struct Tree<'a> {
    context: &'a Context,
    table: u64,
}

/// A left or right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// Returns the balance of a node whose subtree on this side is higher.
    const fn balance(self) -> i8 {
        match self {
            Self::Left => -1,
            Self::Right => 1,
        }
    }
}

impl BalancedLinks {
    const fn child(&self, side: Side) -> u64 {
        match side {
            Side::Left => self.left_child,
            Side::Right => self.right_child,
        }
    }

    const fn set_child(&mut self, side: Side, child: u64) {
        match side {
            Side::Left => self.left_child = child,
            Side::Right => self.right_child = child,
        }
    }
}

impl Tree<'_> {
    fn links(self, node: u64) -> BalancedLinks {
        self.context.read(node)
    }

    fn change(self, node: u64, body: impl FnOnce(&mut BalancedLinks)) {
        let mut links = self.links(node);
        body(&mut links);
        self.context.write(node, &links);
    }

    fn root(self) -> u64 {
        self.links(self.table).right_child
    }

    fn fields(self) -> AvlTable {
        self.context.read(self.table)
    }

    fn change_fields(self, body: impl FnOnce(&mut AvlTable)) {
        let mut fields = self.fields();
        body(&mut fields);
        self.context.write(self.table, &fields);
    }

    /// Returns the side of its parent on which a node is.
    fn side_of(self, parent: u64, node: u64) -> Side {
        if parent != self.table && self.links(parent).left_child == node {
            Side::Left
        } else {
            Side::Right
        }
    }

    /// Replaces a node with another node or, if `new` is 0, with nothing.
    fn replace(self, old: u64, new: u64) {
        let parent = self.links(old).parent;
        let side = self.side_of(parent, old);
        self.change(parent, |links| links.set_child(side, new));
        if new != 0 {
            self.change(new, |links| links.parent = parent);
        }
    }

    /// Rotates a node down to `side`. The node's child on the other side becomes its parent.
    fn rotate(self, node: u64, side: Side) {
        let up = self.links(node).child(side.other());
        let inner = self.links(up).child(side);
        self.replace(node, up);
        self.change(node, |links| {
            links.set_child(side.other(), inner);
            links.parent = up;
        });
        if inner != 0 {
            self.change(inner, |links| links.parent = node);
        }
        self.change(up, |links| links.set_child(side, node));
    }

    fn set_balance(self, node: u64, balance: i8) {
        self.change(node, |links| links.balance = balance.cast_unsigned());
    }

    /// Rebalances a node whose subtree on the side `high` is higher by two. Returns the node that
    /// replaces it, and whether the subtree's height has decreased.
    fn restore(self, node: u64, high: Side) -> (u64, bool) {
        let child = self.links(node).child(high);
        let balance = self.links(child).balance.cast_signed();
        if balance == high.other().balance() {
            let middle = self.links(child).child(high.other());
            let of_middle = self.links(middle).balance.cast_signed();
            self.rotate(child, high);
            self.rotate(node, high.other());
            let is = |side: Side| of_middle == side.balance();
            self.set_balance(node, if is(high) { high.other().balance() } else { 0 });
            self.set_balance(child, if is(high.other()) { high.balance() } else { 0 });
            self.set_balance(middle, 0);
            return (middle, true);
        }
        self.rotate(node, high.other());
        if balance == 0 {
            self.set_balance(node, high.balance());
            self.set_balance(child, high.other().balance());
            return (child, false);
        }
        self.set_balance(node, 0);
        self.set_balance(child, 0);
        (child, true)
    }

    /// Inserts a node at the position at which a search ended.
    fn add(self, node: u64, place: Found) {
        let (parent, side) = match place {
            Found::Left(parent) => (parent, Side::Left),
            Found::Right(parent) => (parent, Side::Right),
            _ => (self.table, Side::Right),
        };
        let links = BalancedLinks { parent, ..Default::default() };
        self.context.write(node, &links);
        self.change(parent, |links| links.set_child(side, node));
        let mut child = node;
        let mut walk = Walk::default();
        loop {
            walk.step(self.context);
            let parent = self.links(child).parent;
            if parent == self.table {
                self.change_fields(|fields| {
                    fields.depth_of_tree = fields.depth_of_tree.wrapping_add(1);
                });
                return;
            }
            let side = self.side_of(parent, child);
            let balance = self.links(parent).balance.cast_signed();
            if balance == side.balance() {
                self.restore(parent, side);
                return;
            }
            let now = balance + side.balance();
            self.set_balance(parent, now);
            if now == 0 {
                return;
            }
            child = parent;
        }
    }

    /// Removes a node from the tree.
    fn take(self, node: u64) {
        let links = self.links(node);
        // The subtree on this side of this parent has decreased in height.
        let (mut parent, mut side);
        if links.left_child != 0 && links.right_child != 0 {
            let next = self.last(links.right_child, Side::Left);
            let of_next = self.links(next);
            if of_next.parent == node {
                (parent, side) = (next, Side::Right);
            } else {
                (parent, side) = (of_next.parent, Side::Left);
                self.replace(next, of_next.right_child);
                self.change(next, |own| own.right_child = links.right_child);
                self.change(links.right_child, |right| right.parent = next);
            }
            self.replace(node, next);
            self.change(next, |own| {
                own.left_child = links.left_child;
                own.balance = links.balance;
            });
            self.change(links.left_child, |left| left.parent = next);
        } else {
            parent = links.parent;
            side = self.side_of(parent, node);
            self.replace(node, links.left_child | links.right_child);
        }
        let mut walk = Walk::default();
        while parent != self.table {
            walk.step(self.context);
            let balance = self.links(parent).balance.cast_signed();
            let mut top = parent;
            if balance == 0 {
                self.set_balance(parent, side.other().balance());
                return;
            }
            if balance == side.balance() {
                self.set_balance(parent, 0);
            } else {
                let (new, is_lower) = self.restore(parent, side.other());
                if !is_lower {
                    return;
                }
                top = new;
            }
            parent = self.links(top).parent;
            side = self.side_of(parent, top);
        }
        self.change_fields(|fields| fields.depth_of_tree = fields.depth_of_tree.saturating_sub(1));
    }

    /// Returns the outermost node of a subtree on one side.
    fn last(self, from: u64, side: Side) -> u64 {
        let mut walk = Walk::default();
        let mut node = from;
        loop {
            let child = self.links(node).child(side);
            if child == 0 {
                return node;
            }
            node = child;
            walk.step(self.context);
        }
    }

    /// Returns the node before or after a node, or 0.
    fn neighbour(self, node: u64, side: Side) -> u64 {
        let child = self.links(node).child(side);
        if child != 0 {
            return self.last(child, side.other());
        }
        let mut walk = Walk::default();
        let mut node = node;
        loop {
            walk.step(self.context);
            let parent = self.links(node).parent;
            if parent == self.table {
                return 0;
            }
            if self.side_of(parent, node) == side.other() {
                return parent;
            }
            node = parent;
        }
    }

    fn first(self) -> u64 {
        match self.root() {
            0 => 0,
            root => self.last(root, Side::Left),
        }
    }

    fn search(self, element: u64) -> Found {
        let fields = self.fields();
        let places = [self.table, fields.compare_routine, fields.balanced_root.right_child];
        search(self.context, places, DATA, element, |node| {
            let links = self.links(node);
            [links.left_child, links.right_child]
        })
    }
}

impl Table for Avl {
    type Header = AvlTable;

    const DATA: u64 = DATA;

    fn allocator(context: &Context, table: u64) -> [u64; 2] {
        let AvlTable { allocate_routine: allocate, free_routine: free, .. } =
            Tree { context, table }.fields();
        [allocate, free]
    }

    fn find(context: &Context, table: u64, element: u64) -> Found {
        Tree { context, table }.search(element)
    }

    fn add(context: &Context, table: u64, node: u64, place: Found) {
        let tree = Tree { context, table };
        tree.add(node, place);
        tree.change_fields(|fields| {
            fields.number_generic_table_elements =
                fields.number_generic_table_elements.wrapping_add(1);
        });
    }

    /// Removes a node from its table. An enumeration continues with the next node.
    fn take(context: &Context, table: u64, node: u64) {
        let tree = Tree { context, table };
        let before = tree.neighbour(node, Side::Left);
        tree.take(node);
        tree.change_fields(|fields| {
            fields.number_generic_table_elements =
                fields.number_generic_table_elements.wrapping_sub(1);
            fields.delete_count = fields.delete_count.wrapping_add(1);
            if fields.restart_key == node {
                fields.restart_key = before;
            }
        });
    }

    fn next(context: &Context, table: u64, node: u64) -> u64 {
        let tree = Tree { context, table };
        if node == 0 { tree.first() } else { tree.neighbour(node, Side::Right) }
    }
}

/// Finds the first of the elements that the driver's routine considers equal.
fn lookup_first(context: &Context, table: At<AvlTable>, buffer: Memory, key: At<u64>) -> Memory {
    let tree = Tree { context, table: table.0 };
    let mut first = tree.search(buffer.0).node();
    let routine = tree.fields().compare_routine;
    let mut walk = Walk::default();
    while first != 0 {
        walk.step(context);
        let before = tree.neighbour(first, Side::Left);
        let is_equal = |node: u64| {
            compare(context, routine, table.0, buffer.0, element::<Avl>(node)) == Order::Equal
        };
        if before == 0 || !is_equal(before) {
            break;
        }
        first = before;
    }
    key.write(context, first);
    At::new(element::<Avl>(first))
}

/// The offset of the restart key for enumerations.
const RESTART: u64 = std::mem::offset_of!(AvlTable, restart_key) as u64;

fn enumerate(context: &Context, table: At<AvlTable>, restart: bool) -> Memory {
    let key = At::new(table.0.wrapping_add(RESTART));
    if restart {
        key.write(context, 0);
    }
    enumerate_from::<Avl>(context, table, key)
}

/// Returns the element at an index in the order of the elements.
fn get_element(context: &Context, table: At<AvlTable>, number: u32) -> Memory {
    let tree = Tree { context, table: table.0 };
    if number >= tree.fields().number_generic_table_elements {
        return At::NULL;
    }
    let mut node = tree.first();
    for _ in 0..number {
        if node != 0 {
            node = tree.neighbour(node, Side::Right);
        }
    }
    At::new(element::<Avl>(node))
}

fn count(context: &Context, table: At<AvlTable>) -> u32 {
    Tree { context, table: table.0 }.fields().number_generic_table_elements
}

fn is_empty(context: &Context, table: At<AvlTable>) -> bool {
    Tree { context, table: table.0 }.fields().number_generic_table_elements == 0
}
