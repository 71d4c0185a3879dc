//! The tree of registry keys.

use std::collections::{BTreeMap, HashMap};

use super::value::RegistryValue;
use crate::ground::{NtResult, NtStatus};

/// The maximum length of a key's name in UTF-16 units.
pub const MAX_KEY_NAME: usize = 255;
/// The maximum number of keys in a path.
const MAX_DEPTH: usize = 512;

/// The depth of hives in the tree: below the registry key, and below the key of the machine or the
/// users. Only the system creates and deletes keys above the hives.
pub const HIVES: usize = 2;

pub const CHILD_MUST_BE_VOLATILE: NtStatus = NtStatus::from_bits(0xC000_0181);

/// Identifies a key, which may have been deleted. Ids are unique within a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// Returns the number of the key.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The parameters for creating a key.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewKey<'a> {
    /// The class, or an empty string.
    pub class: &'a str,
    /// Set if a restart of the system would remove the key.
    pub is_volatile: bool,
}

/// All keys.
pub struct Keys {
    /// The keys that have not been deleted.
    pub all: HashMap<KeyId, Key>,
    issued: u64,
    root: KeyId,
    /// The key in which `CurrentControlSet` refers to a control set.
    system: KeyId,
}

/// A key.
pub struct Key {
    pub name: String,
    pub class: String,
    pub parent: Option<KeyId>,
    pub is_volatile: bool,
    pub last_write: i64,
    /// The subkeys by folded name, which determines their order.
    pub below: BTreeMap<String, KeyId>,
    /// The values with their names, oldest first.
    pub values: Vec<(String, RegistryValue)>,
}

/// The keys that every system has.
const PREDEFINED: [&str; 12] = [
    r"\REGISTRY\MACHINE\HARDWARE\DEVICEMAP",
    r"\REGISTRY\MACHINE\SAM",
    r"\REGISTRY\MACHINE\SECURITY",
    r"\REGISTRY\MACHINE\SOFTWARE\Microsoft\Windows NT\CurrentVersion",
    r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Control\Class",
    r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Control\DeviceClasses",
    r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Enum\ROOT",
    r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Hardware Profiles\Current",
    r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Services",
    r"\REGISTRY\MACHINE\SYSTEM\Select",
    r"\REGISTRY\USER\.DEFAULT",
    r"\REGISTRY\USER\S-1-5-18",
];

/// Folds the case of a name, for comparisons.
pub fn folded(name: &str) -> String {
    let one = |character: char| {
        let mut upper = character.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(upper), None) => upper,
            // If folding would produce several characters, the character does not change.
            _ => character,
        }
    };
    name.chars().map(one).collect()
}

/// Returns the names of the keys along a path.
pub fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('\\').filter(|name| !name.is_empty())
}

impl Keys {
    pub fn new(now: i64) -> Self {
        let root = KeyId(0);
        let mut keys = Self { all: HashMap::new(), issued: 1, root, system: root };
        keys.all.insert(root, Key::new("REGISTRY", None, NewKey::default(), now));
        for path in PREDEFINED {
            let mut at = root;
            for name in names(path).skip(1) {
                at = keys.below(at, name).unwrap_or_else(|| {
                    // The hardware hive exists only in memory, and accepts both volatile and
                    // nonvolatile keys.
                    keys.insert(at, name, NewKey::default(), now)
                });
                if name == "SYSTEM" {
                    keys.system = at;
                }
            }
        }
        keys
    }

    pub fn key(&self, id: KeyId) -> NtResult<&Key> {
        self.all.get(&id).ok_or(NtStatus::KEY_DELETED)
    }

    pub fn key_mut(&mut self, id: KeyId) -> NtResult<&mut Key> {
        self.all.get_mut(&id).ok_or(NtStatus::KEY_DELETED)
    }

    /// Returns the direct subkey with this name.
    fn below(&self, parent: KeyId, name: &str) -> Option<KeyId> {
        let mut name = folded(name);
        if parent == self.system && name == "CURRENTCONTROLSET" {
            "CONTROLSET001".clone_into(&mut name);
        }
        self.all.get(&parent)?.below.get(&name).copied()
    }

    fn insert(&mut self, parent: KeyId, name: &str, new: NewKey<'_>, now: i64) -> KeyId {
        let id = KeyId(self.issued);
        self.issued += 1;
        self.all.insert(id, Key::new(name, Some(parent), new, now));
        if let Some(parent) = self.all.get_mut(&parent) {
            parent.below.insert(folded(name), id);
            parent.last_write = now;
        }
        id
    }

    /// Splits a path into the key at which it starts and the names below that key.
    pub fn start<'a>(
        &self,
        start: Option<KeyId>,
        path: &'a str,
    ) -> Result<(KeyId, Vec<&'a str>), NtStatus> {
        /// `STATUS_OBJECT_PATH_NOT_FOUND`.
        const OBJECT_PATH_NOT_FOUND: NtStatus = NtStatus::from_bits(0xC000_003A);
        let mut names: Vec<&str> = names(path).collect();
        let start = match start {
            Some(_) if path.starts_with('\\') => return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD),
            Some(start) => {
                self.key(start)?;
                start
            }
            None if !path.starts_with('\\') => return Err(NtStatus::OBJECT_PATH_SYNTAX_BAD),
            None => {
                let is_registry =
                    names.first().is_some_and(|first| first.eq_ignore_ascii_case("Registry"));
                if !is_registry {
                    return Err(if names.len() > 1 {
                        OBJECT_PATH_NOT_FOUND
                    } else {
                        NtStatus::OBJECT_NAME_NOT_FOUND
                    });
                }
                names.remove(0);
                self.root
            }
        };
        let is_long = |name: &&str| name.encode_utf16().count() > MAX_KEY_NAME;
        if names.len() > MAX_DEPTH || names.iter().any(is_long) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        Ok((start, names))
    }

    /// Follows names from a key. Returns the last key that exists, and the remaining names.
    pub fn follow<'a, 'b>(&self, start: KeyId, names: &'b [&'a str]) -> (KeyId, &'b [&'a str]) {
        let mut at = start;
        for (number, name) in names.iter().enumerate() {
            match self.below(at, name) {
                Some(next) => at = next,
                None => return (at, names.get(number..).unwrap_or_default()),
            }
        }
        (at, &[])
    }

    /// Returns the number of keys above a key.
    pub fn depth(&self, id: KeyId) -> usize {
        let parent = |id: &KeyId| self.all.get(id)?.parent;
        std::iter::successors(parent(&id), parent).count()
    }

    /// Creates a new key directly below an existing key.
    pub fn create(
        &mut self,
        parent: KeyId,
        name: &str,
        new: NewKey<'_>,
        now: i64,
    ) -> NtResult<KeyId> {
        let depth = self.depth(parent);
        if !(HIVES..MAX_DEPTH).contains(&depth) {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        if self.key(parent)?.is_volatile && !new.is_volatile {
            return Err(CHILD_MUST_BE_VOLATILE);
        }
        Ok(self.insert(parent, name, new, now))
    }
}

impl Key {
    fn new(name: &str, parent: Option<KeyId>, new: NewKey<'_>, now: i64) -> Self {
        Self {
            name: name.to_owned(),
            class: new.class.to_owned(),
            parent,
            is_volatile: new.is_volatile,
            last_write: now,
            below: BTreeMap::new(),
            values: Vec::new(),
        }
    }

    /// Returns the index of the value with this name.
    pub fn position(&self, name: &str) -> Option<usize> {
        let name = folded(name);
        self.values.iter().position(|(one, _)| folded(one) == name)
    }
}
