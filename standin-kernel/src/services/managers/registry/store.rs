//! The keys and values of the registry.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

pub use super::tree::{KeyId, NewKey, folded};
use super::{
    tree::{HIVES, Keys, names},
    value::RegistryValue,
};
use crate::{
    ground::{NtResult, NtStatus, clock::Clock},
    services::managers::device_properties::KeyedProperties,
};

/// The maximum length of a value's name in UTF-16 units.
const MAX_VALUE_NAME: usize = 16_383;
/// The description of a key. Sizes are in bytes, as in registry queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDescription {
    /// The last segment of its path.
    pub name: String,
    /// The class that its creator specified, or an empty string.
    pub class: String,
    /// The time of the last change, in units of 100 ns since 1601.
    pub last_write: i64,
    /// The number of direct subkeys.
    pub subkeys: u32,
    /// The size of the longest subkey name.
    pub max_name: u32,
    /// The size of the longest subkey class.
    pub max_class: u32,
    /// The number of values.
    pub values: u32,
    /// The size of the longest value name.
    pub max_value_name: u32,
    /// The size of the largest value.
    pub max_value_data: u32,
}

/// The hives that only the system can write, as subkeys of the machine's key.
const TRUSTED: [&str; 5] = ["HARDWARE", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"];

/// The registry of a kernel. Names are compared without regard to case.
pub struct Registry {
    keys: Mutex<Keys>,
    /// The handles of keys that the framework has opened.
    framework: Mutex<FrameworkHandles>,
    /// The properties of devices and interfaces that drivers have set.
    pub properties: KeyedProperties,
    clock: Arc<Clock>,
}

/// The handles of the framework's key objects, which drivers can pass to kernel routines.
#[derive(Default)]
struct FrameworkHandles {
    issued: u64,
    open: HashMap<u64, KeyId>,
}

/// The first handle for the framework's keys. The kernel's own handles have lower values.
const FIRST_HANDLE: u64 = 0xFFFF_FFFF_8800_0000;

/// Returns the size of a string in bytes when it is encoded as UTF-16.
fn size_of_text(text: &str) -> u32 {
    u32::try_from(2 * text.encode_utf16().count()).unwrap_or(u32::MAX)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Registry {
    /// Creates a registry with the keys that every system has. `clock` provides the times of changes.
    pub fn new(clock: Arc<Clock>) -> Self {
        let now = clock.file_time(clock.last());
        Self {
            keys: Mutex::new(Keys::new(now)),
            framework: Mutex::default(),
            properties: KeyedProperties::default(),
            clock,
        }
    }

    /// Opens a handle to a key for the framework.
    pub fn open_handle(&self, key: KeyId) -> u64 {
        let mut handles = self.framework.lock();
        let handle = FIRST_HANDLE + 4 * handles.issued;
        handles.issued += 1;
        handles.open.insert(handle, key);
        handle
    }

    /// Returns the key to which a framework handle refers.
    pub fn key_of_handle(&self, handle: u64) -> Option<KeyId> {
        self.framework.lock().open.get(&handle).copied()
    }

    /// Closes a framework handle.
    pub fn close_handle(&self, handle: u64) {
        self.framework.lock().open.remove(&handle);
    }

    fn now(&self) -> i64 {
        self.clock.file_time(self.clock.last())
    }

    /// Opens a key by its path, which is absolute or relative to `start`.
    pub fn open(&self, start: Option<KeyId>, path: &str) -> NtResult<KeyId> {
        let keys = self.keys.lock();
        let (start, names) = keys.start(start, path)?;
        match keys.follow(start, &names) {
            (key, []) => Ok(key),
            _ => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        }
    }

    /// Opens a key, or creates it if only the last segment of its path does not exist. Returns
    /// whether the key is new. See [`Self::open`].
    pub fn create(
        &self,
        start: Option<KeyId>,
        path: &str,
        new: NewKey<'_>,
    ) -> NtResult<(KeyId, bool)> {
        let now = self.now();
        let mut keys = self.keys.lock();
        let (start, names) = keys.start(start, path)?;
        match keys.follow(start, &names) {
            (key, []) => Ok((key, false)),
            (parent, [name]) => Ok((keys.create(parent, name, new, now)?, true)),
            _ => Err(NtStatus::OBJECT_NAME_NOT_FOUND),
        }
    }

    /// Creates the key with an absolute path and all its parents, unless they exist.
    pub fn create_all(&self, path: &str) -> NtResult<KeyId> {
        let now = self.now();
        let mut keys = self.keys.lock();
        let (start, names) = keys.start(None, path)?;
        let (mut at, missing) = keys.follow(start, &names);
        for name in missing {
            let is_volatile = keys.key(at)?.is_volatile;
            let new = NewKey { is_volatile, ..NewKey::default() };
            at = keys.create(at, name, new, now)?;
        }
        Ok(at)
    }

    /// Deletes a key that has no subkeys.
    pub fn delete(&self, key: KeyId) -> NtResult {
        let now = self.now();
        let mut keys = self.keys.lock();
        let found = keys.key(key)?;
        let (name, parent) = (folded(&found.name), found.parent);
        if !found.below.is_empty() || keys.depth(key) <= HIVES {
            return Err(NtStatus::CANNOT_DELETE);
        }
        keys.all.remove(&key);
        if let Some(parent) = parent.and_then(|parent| keys.all.get_mut(&parent)) {
            parent.below.remove(&name);
            parent.last_write = now;
        }
        Ok(())
    }

    /// Deletes a key and all its subkeys.
    pub fn delete_all(&self, key: KeyId) -> NtResult {
        let below: Vec<KeyId> = self.keys.lock().key(key)?.below.values().copied().collect();
        for one in below {
            self.delete_all(one)?;
        }
        self.delete(key)
    }

    /// Returns whether a key still exists.
    pub fn exists(&self, key: KeyId) -> bool {
        self.keys.lock().all.contains_key(&key)
    }

    /// Returns whether a key is in a hive that only the system can write.
    pub fn is_trusted(&self, key: KeyId) -> bool {
        let path = self.path(key).unwrap_or_default();
        let mut names = names(&path).skip(1).map(folded);
        names.next().as_deref() == Some("MACHINE")
            && names.next().is_some_and(|hive| TRUSTED.contains(&hive.as_str()))
    }

    /// Returns a key's absolute path.
    pub fn path(&self, key: KeyId) -> NtResult<String> {
        let keys = self.keys.lock();
        let mut found = keys.key(key)?;
        let mut names = vec![found.name.as_str()];
        while let Some(parent) = found.parent {
            found = keys.key(parent)?;
            names.push(&found.name);
        }
        names.reverse();
        Ok(format!(r"\{}", names.join(r"\")))
    }

    /// Describes a key.
    pub fn describe(&self, key: KeyId) -> NtResult<KeyDescription> {
        let keys = self.keys.lock();
        let key = keys.key(key)?;
        let below = || key.below.values().filter_map(|id| keys.all.get(id));
        let values = || key.values.iter();
        let data = |(_, value): &(String, RegistryValue)| count(value.bytes().len());
        Ok(KeyDescription {
            name: key.name.clone(),
            class: key.class.clone(),
            last_write: key.last_write,
            subkeys: count(key.below.len()),
            max_name: below().map(|one| size_of_text(&one.name)).max().unwrap_or(0),
            max_class: below().map(|one| size_of_text(&one.class)).max().unwrap_or(0),
            values: count(key.values.len()),
            max_value_name: values().map(|(name, _)| size_of_text(name)).max().unwrap_or(0),
            max_value_data: values().map(data).max().unwrap_or(0),
        })
    }

    /// Returns the direct subkey with this index, in order of name.
    pub fn subkey(&self, key: KeyId, number: u32) -> NtResult<KeyId> {
        let keys = self.keys.lock();
        let mut below = keys.key(key)?.below.values();
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        below.nth(number).copied().ok_or(NtStatus::NO_MORE_ENTRIES)
    }

    /// Returns a value, and its name as spelled when it was set. An empty name denotes the key's
    /// default value.
    pub fn value(&self, key: KeyId, name: &str) -> NtResult<(String, RegistryValue)> {
        let keys = self.keys.lock();
        let key = keys.key(key)?;
        let at = key.position(name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
        let found = key.values.get(at).cloned();
        found.ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)
    }

    /// Returns the value with this index, oldest first, and its name.
    pub fn value_at(&self, key: KeyId, number: u32) -> NtResult<(String, RegistryValue)> {
        let keys = self.keys.lock();
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let found = keys.key(key)?.values.get(number).cloned();
        found.ok_or(NtStatus::NO_MORE_ENTRIES)
    }

    /// Sets a value.
    pub fn set_value(&self, key: KeyId, name: &str, value: RegistryValue) -> NtResult {
        if name.encode_utf16().count() > MAX_VALUE_NAME {
            return Err(NtStatus::INVALID_PARAMETER);
        }
        let now = self.now();
        let mut keys = self.keys.lock();
        let key = keys.key_mut(key)?;
        match key.position(name).and_then(|at| key.values.get_mut(at)) {
            Some((_, present)) => *present = value,
            None => key.values.push((name.to_owned(), value)),
        }
        key.last_write = now;
        Ok(())
    }

    /// Removes a value.
    pub fn remove_value(&self, key: KeyId, name: &str) -> NtResult {
        let now = self.now();
        let mut keys = self.keys.lock();
        let key = keys.key_mut(key)?;
        let at = key.position(name).ok_or(NtStatus::OBJECT_NAME_NOT_FOUND)?;
        key.values.remove(at);
        key.last_write = now;
        Ok(())
    }

    /// Sets a value of a key, given the key's absolute path. Creates the key if it does not exist.
    pub fn set_at(&self, path: &str, name: &str, value: RegistryValue) -> NtResult {
        let key = self.create_all(path)?;
        self.set_value(key, name, value)
    }

    /// Returns a value of a key, given the key's absolute path.
    pub fn value_of(&self, path: &str, name: &str) -> Option<RegistryValue> {
        let key = self.open(None, path).ok()?;
        Some(self.value(key, name).ok()?.1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::{
        super::tree::{CHILD_MUST_BE_VOLATILE, MAX_KEY_NAME},
        *,
    };

    const SERVICES: &str = r"\Registry\Machine\System\CurrentControlSet\Services";

    fn registry() -> Registry {
        Registry::new(Arc::new(Clock::starting_at(UNIX_EPOCH)))
    }

    #[test]
    fn names_are_kept_and_compared_without_regard_to_case() {
        let registry = registry();
        let key = registry.create_all(&format!(r"{SERVICES}\One\Two")).unwrap();
        let path = r"\registry\machine\SYSTEM\controlset001\services\ONE\two\";
        assert_eq!(registry.open(None, path), Ok(key));
        assert_eq!(
            registry.path(key).unwrap(),
            r"\REGISTRY\MACHINE\SYSTEM\ControlSet001\Services\One\Two"
        );
        registry.set_value(key, "Größe", 1_u32.into()).unwrap();
        registry.set_value(key, "GRÖßE", 2_u32.into()).unwrap();
        let found = registry.value(key, "größe").unwrap();
        assert_eq!(found, ("Größe".to_owned(), RegistryValue::Dword(2)));
        assert_eq!(registry.describe(key).unwrap().values, 1);
    }

    #[test]
    fn only_the_last_key_of_a_path_is_created() {
        let registry = registry();
        let services = registry.open(None, SERVICES).unwrap();
        let create = |start, path| registry.create(start, path, NewKey::default());
        assert_eq!(create(Some(services), r"a\b"), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
        let (a, is_new) = create(Some(services), "a").unwrap();
        assert!(is_new);
        assert_eq!(create(Some(services), "A"), Ok((a, false)));
        assert_eq!(create(None, "relative"), Err(NtStatus::OBJECT_PATH_SYNTAX_BAD));
        assert_eq!(create(Some(a), r"\Registry"), Err(NtStatus::OBJECT_PATH_SYNTAX_BAD));
        for path in [r"\Registry\New", r"\Registry\Machine\New", r"\Registry\User\New"] {
            assert_eq!(create(None, path), Err(NtStatus::INVALID_PARAMETER), "{path}");
        }
        let long = "x".repeat(MAX_KEY_NAME + 1);
        assert_eq!(create(Some(a), &long), Err(NtStatus::INVALID_PARAMETER));
        let new = NewKey { is_volatile: true, ..NewKey::default() };
        let (volatile, _) = registry.create(Some(a), "volatile", new).unwrap();
        assert_eq!(create(Some(volatile), "x"), Err(CHILD_MUST_BE_VOLATILE));
    }

    #[test]
    fn deleted_keys_stay_deleted() {
        let registry = registry();
        let below = registry.create_all(&format!(r"{SERVICES}\a\b")).unwrap();
        let above = registry.open(None, &format!(r"{SERVICES}\a")).unwrap();
        assert_eq!(registry.delete(above), Err(NtStatus::CANNOT_DELETE));
        assert_eq!(registry.delete(below), Ok(()));
        assert_eq!(registry.delete(below), Err(NtStatus::KEY_DELETED));
        let again = registry.create_all(&format!(r"{SERVICES}\a\b")).unwrap();
        assert_ne!(again, below);
        assert_eq!(registry.value_at(below, 0), Err(NtStatus::KEY_DELETED));
        registry.delete_all(above).unwrap();
        assert!(!registry.exists(again));
        let machine = registry.open(None, r"\Registry\Machine").unwrap();
        assert_eq!(registry.delete(machine), Err(NtStatus::CANNOT_DELETE));
    }

    #[test]
    fn only_the_systems_hives_are_trusted() {
        let registry = registry();
        for (path, is_trusted) in [
            (SERVICES, true),
            (r"\Registry\Machine\Software", true),
            (r"\Registry\Machine", false),
            (r"\Registry\User\.Default", false),
        ] {
            let key = registry.open(None, path).unwrap();
            assert_eq!(registry.is_trusted(key), is_trusted, "{path}");
        }
    }
}
