//! Tables that are trees balanced by height (`RTL_AVL_TABLE`).

use super::{Found, Order, Walk, compare, search, store_boolean};
use crate::{
    execution::routine::{Routine, low_half},
    ground::{
        executive_abi::{AvlTable, BalancedLinks},
        irql::Irql,
        memory,
    },
    services::ntoskrnl::context::{Context, Entries},
};

const DISPATCH: Irql = Irql::DISPATCH_LEVEL;

pub const ENTRIES: Entries = &[
    ("RtlInitializeGenericTableAvl", DISPATCH, Routine::Five(initialize)),
    ("RtlInsertElementGenericTableAvl", DISPATCH, Routine::Four(insert)),
    ("RtlInsertElementGenericTableFullAvl", DISPATCH, Routine::Six(insert_full)),
    ("RtlDeleteElementGenericTableAvl", DISPATCH, Routine::Two(delete)),
    ("RtlDeleteElementGenericTableAvlEx", DISPATCH, Routine::Two(delete_node)),
    ("RtlLookupElementGenericTableAvl", DISPATCH, Routine::Two(lookup)),
    ("RtlLookupElementGenericTableFullAvl", DISPATCH, Routine::Four(lookup_full)),
    ("RtlLookupFirstMatchingElementGenericTableAvl", DISPATCH, Routine::Three(lookup_first)),
    ("RtlEnumerateGenericTableAvl", DISPATCH, Routine::Two(enumerate)),
    ("RtlEnumerateGenericTableWithoutSplayingAvl", DISPATCH, Routine::Two(enumerate_from)),
    ("RtlGetElementGenericTableAvl", DISPATCH, Routine::Two(get_element)),
    ("RtlNumberGenericTableElementsAvl", DISPATCH, Routine::One(count)),
    ("RtlIsGenericTableEmptyAvl", DISPATCH, Routine::One(is_empty)),
];

/// The offset of an element in its node.
const DATA: u64 = size_of::<BalancedLinks>() as u64;

fn initialize(
    context: &Context,
    table: u64,
    compare: u64,
    allocate: u64,
    free: u64,
    its_context: u64,
) -> u64 {
    const NO_LINKS: BalancedLinks =
        BalancedLinks { parent: 0, left: 0, right: 0, balance: 0, reserved: [0; 3], reserved_1: 0 };
    let value = AvlTable {
        root: BalancedLinks { parent: table, ..NO_LINKS },
        ordered: 0,
        which: 0,
        count: 0,
        depth: 0,
        reserved: 0,
        restart: 0,
        deletions: 0,
        reserved_1: 0,
        compare,
        allocate,
        free,
        context: its_context,
    };
    context.write(table, &value);
    0
}

/// A table's tree. The parent of its root is the table itself, whose right child the root is.
#[derive(Clone, Copy)]
struct Tree<'a> {
    context: &'a Context,
    table: u64,
}

/// The side of a child.
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
            Side::Left => self.left,
            Side::Right => self.right,
        }
    }

    const fn set_child(&mut self, side: Side, child: u64) {
        match side {
            Side::Left => self.left = child,
            Side::Right => self.right = child,
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
        self.links(self.table).right
    }

    fn fields(self) -> AvlTable {
        self.context.read(self.table)
    }

    fn change_fields(self, body: impl FnOnce(&mut AvlTable)) {
        let mut fields = self.fields();
        body(&mut fields);
        self.context.write(self.table, &fields);
    }

    /// Returns the side on which a node is its parent's child.
    fn side_of(self, parent: u64, node: u64) -> Side {
        if parent != self.table && self.links(parent).left == node {
            Side::Left
        } else {
            Side::Right
        }
    }

    /// Puts a node, or nothing, in the place of another one.
    fn replace(self, old: u64, new: u64) {
        let parent = self.links(old).parent;
        let side = self.side_of(parent, old);
        self.change(parent, |links| links.set_child(side, new));
        if new != 0 {
            self.change(new, |links| links.parent = parent);
        }
    }

    /// Makes a node the child of its child on the other side.
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
        self.change(node, |links| links.balance = balance);
    }

    /// Restores the balance of a node whose subtree on one side is higher by two. Returns the node that
    /// is in its place, and whether the subtree is lower than before.
    fn restore(self, node: u64, high: Side) -> (u64, bool) {
        let child = self.links(node).child(high);
        let balance = self.links(child).balance;
        if balance == high.other().balance() {
            let middle = self.links(child).child(high.other());
            let of_middle = self.links(middle).balance;
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

    /// Adds a node where a search has ended.
    fn add(self, node: u64, place: Found) {
        let (parent, side) = match place {
            Found::Left(parent) => (parent, Side::Left),
            Found::Right(parent) => (parent, Side::Right),
            _ => (self.table, Side::Right),
        };
        let links = BalancedLinks {
            parent,
            left: 0,
            right: 0,
            balance: 0,
            reserved: [0; 3],
            reserved_1: 0,
        };
        self.context.write(node, &links);
        self.change(parent, |links| links.set_child(side, node));
        let mut child = node;
        let mut walk = Walk::default();
        loop {
            walk.step(self.context);
            let parent = self.links(child).parent;
            if parent == self.table {
                self.change_fields(|fields| fields.depth = fields.depth.wrapping_add(1));
                return;
            }
            let side = self.side_of(parent, child);
            let balance = self.links(parent).balance;
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

    /// Takes a node out of the tree.
    fn take(self, node: u64) {
        let links = self.links(node);
        // Where a subtree is lower now: its parent, and the side.
        let (mut parent, mut side);
        if links.left != 0 && links.right != 0 {
            let next = self.last(links.right, Side::Left);
            let of_next = self.links(next);
            if of_next.parent == node {
                (parent, side) = (next, Side::Right);
            } else {
                (parent, side) = (of_next.parent, Side::Left);
                self.replace(next, of_next.right);
                self.change(next, |own| own.right = links.right);
                self.change(links.right, |right| right.parent = next);
            }
            self.replace(node, next);
            self.change(next, |own| {
                own.left = links.left;
                own.balance = links.balance;
            });
            self.change(links.left, |left| left.parent = next);
        } else {
            parent = links.parent;
            side = self.side_of(parent, node);
            self.replace(node, links.left | links.right);
        }
        let mut walk = Walk::default();
        while parent != self.table {
            walk.step(self.context);
            let balance = self.links(parent).balance;
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
        self.change_fields(|fields| fields.depth = fields.depth.saturating_sub(1));
    }

    /// Returns the last node of a subtree towards a side.
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
        let places = [self.table, fields.compare, fields.root.right];
        search(self.context, places, DATA, element, |node| {
            let links = self.links(node);
            [links.left, links.right]
        })
    }
}

/// Returns the address of a node's element, or null without a node.
const fn element(node: u64) -> u64 {
    if node == 0 { 0 } else { node.wrapping_add(DATA) }
}

fn insert(context: &Context, table: u64, buffer: u64, size: u64, is_new: u64) -> u64 {
    let place = Tree { context, table }.search(buffer);
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
    let tree = Tree { context, table };
    if let Found::Node(node) = place {
        store_boolean(context, is_new, false);
        return element(node);
    }
    let size = low_half(size);
    let bytes = memory::read_bytes(buffer, usize::try_from(size).unwrap_or(0));
    let bytes = context.checked(bytes);
    let whole = u64::from(size).wrapping_add(DATA);
    let allocate = tree.fields().allocate;
    let node = context.call_driver("the table's allocation routine", allocate, [table, whole]);
    store_boolean(context, is_new, node != 0);
    if node == 0 {
        return 0;
    }
    tree.add(node, place);
    tree.change_fields(|fields| fields.count = fields.count.wrapping_add(1));
    context.write_bytes(element(node), &bytes);
    element(node)
}

fn delete(context: &Context, table: u64, buffer: u64) -> u64 {
    match (Tree { context, table }).search(buffer) {
        Found::Node(node) => {
            delete_node(context, table, node);
            1
        }
        _ => 0,
    }
}

/// Takes a node out of the tree and frees it. An enumeration goes on with the node after it.
fn delete_node(context: &Context, table: u64, node: u64) -> u64 {
    let tree = Tree { context, table };
    let before = tree.neighbour(node, Side::Left);
    tree.take(node);
    tree.change_fields(|fields| {
        fields.count = fields.count.wrapping_sub(1);
        fields.deletions = fields.deletions.wrapping_add(1);
        if fields.restart == node {
            fields.restart = before;
        }
    });
    let free = tree.fields().free;
    context.call_driver("the table's free routine", free, [table, node]);
    0
}

fn lookup(context: &Context, table: u64, buffer: u64) -> u64 {
    match (Tree { context, table }).search(buffer) {
        Found::Node(node) => element(node),
        _ => 0,
    }
}

fn lookup_full(context: &Context, table: u64, buffer: u64, node_at: u64, result_at: u64) -> u64 {
    let found = Tree { context, table }.search(buffer);
    found.store(context, node_at, result_at);
    match found {
        Found::Node(node) => element(node),
        _ => 0,
    }
}

/// Finds the first of the elements that the driver's routine calls equal.
fn lookup_first(context: &Context, table: u64, buffer: u64, key: u64) -> u64 {
    let tree = Tree { context, table };
    let mut first = match tree.search(buffer) {
        Found::Node(node) => node,
        _ => 0,
    };
    let routine = tree.fields().compare;
    let mut walk = Walk::default();
    while first != 0 {
        walk.step(context);
        let before = tree.neighbour(first, Side::Left);
        let is_equal =
            |node: u64| compare(context, routine, table, buffer, element(node)) == Order::Equal;
        if before == 0 || !is_equal(before) {
            break;
        }
        first = before;
    }
    context.write(key, &first);
    element(first)
}

/// The offset of the key of enumerations.
const RESTART: u64 = std::mem::offset_of!(AvlTable, restart) as u64;

fn enumerate(context: &Context, table: u64, restart: u64) -> u64 {
    let key = table.wrapping_add(RESTART);
    if restart & 0xFF != 0 {
        context.write(key, &0_u64);
    }
    enumerate_from(context, table, key)
}

/// Returns the element after that of a key, which is a node or null for the first element.
fn enumerate_from(context: &Context, table: u64, key: u64) -> u64 {
    let tree = Tree { context, table };
    let next = match context.read::<u64>(key) {
        0 => tree.first(),
        node => tree.neighbour(node, Side::Right),
    };
    if next != 0 {
        context.write(key, &next);
    }
    element(next)
}

/// Returns an element by its number in the order of the elements.
fn get_element(context: &Context, table: u64, number: u64) -> u64 {
    let tree = Tree { context, table };
    let number = low_half(number);
    if number >= tree.fields().count {
        return 0;
    }
    let mut node = tree.first();
    for _ in 0..number {
        if node != 0 {
            node = tree.neighbour(node, Side::Right);
        }
    }
    element(node)
}

fn count(context: &Context, table: u64) -> u64 {
    u64::from(Tree { context, table }.fields().count)
}

fn is_empty(context: &Context, table: u64) -> u64 {
    u64::from(Tree { context, table }.fields().count == 0)
}
