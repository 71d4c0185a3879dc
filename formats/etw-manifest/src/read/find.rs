//! Finds items by their names without searching whole lists, because manifests are untrusted and
//! can be long.

use std::{
    collections::{HashMap, HashSet},
    hash::Hash,
};

use etw_wire::Guid;

use crate::model::QName;

/// The first item of a growing list with each key.
#[derive(Debug)]
pub struct Index<K> {
    places: HashMap<K, usize>,
    /// The number of the list's items in the index.
    known: usize,
}

impl<K> Default for Index<K> {
    fn default() -> Self {
        Self { places: HashMap::new(), known: 0 }
    }
}

impl<K: Eq + Hash> Index<K> {
    /// Returns the first item with a key. The list must be the same each time, except for added
    /// items.
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

/// An element or attribute that is left out: its kind, name, enclosing element and namespace.
type LeftOut = (&'static str, Box<str>, &'static str, Box<str>);

/// The names of the document.
#[derive(Debug, Default)]
pub struct Globals {
    pub texts: Index<String>,
    pub providers: Index<Guid>,
    /// The places of the elements and attributes that are left out in their list.
    pub left_out: HashMap<LeftOut, usize>,
}
