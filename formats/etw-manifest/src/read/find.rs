//! Finds items by name without searching whole lists: manifests are untrusted and can be long.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use etw_wire::Guid;

use crate::model::QName;

/// Maps each key to the first item with it in a growing list.
#[derive(Debug)]
pub struct Index<K> {
    places: HashMap<K, usize>,
    /// The number of the list's items that are already indexed.
    known: usize,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self { places: HashMap::new(), known: 0 }
    }
}

impl<K: Eq + Hash> Index<K> {
    /// Returns the first item with the key `wanted`. Each call must pass the same list, possibly
    /// with items appended.
    pub fn find<T, I: IntoIterator<Item = K>>(
        &mut self,
        items: &[T],
        keys: impl Fn(&T) -> I,
        wanted: &K,
    ) -> Option<usize> {
        for (number, item) in items.iter().enumerate().skip(self.known) {
            for key in keys(item) {
                self.places.entry(key).or_insert(number);
            }
        }
        self.known = items.len();
        self.places.get(wanted).copied()
    }
}

/// The names and numbers of the provider that is being read.
#[derive(Debug, Default)]
pub struct Names {
    pub channels: Index<String>,
    pub levels: Index<QName>,
    pub level_values: Index<u8>,
    pub tasks: Index<QName>,
    pub task_values: Index<u16>,
    pub opcodes: Index<(Option<usize>, QName)>,
    pub opcode_values: Index<(Option<usize>, u8)>,
    pub keywords: Index<QName>,
    pub maps: Index<String>,
    pub templates: Index<String>,
    pub events: HashSet<(u16, u8)>,
}

/// An ignored element or attribute: its kind, name, enclosing element and namespace.
type LeftOut = (&'static str, Box<str>, &'static str, Box<str>);

/// Names that apply to the whole document.
#[derive(Debug, Default)]
pub struct Globals {
    pub texts: Index<String>,
    pub providers: Index<Guid>,
    /// The indexes of the ignored elements and attributes in their list.
    pub left_out: HashMap<LeftOut, usize>,
}
