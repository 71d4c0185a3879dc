//! The registry: keys by their paths, and their values.

use std::collections::BTreeMap;

use super::text::text_bytes;

/// A value in the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistryValue {
    /// `REG_DWORD`.
    Dword(u32),
    /// `REG_QWORD`.
    Qword(u64),
    /// `REG_SZ`.
    Text(String),
    /// `REG_MULTI_SZ`.
    Texts(Vec<String>),
    /// `REG_BINARY`.
    Binary(Vec<u8>),
    /// A value of another type: a `REG_*` constant and the value's bytes.
    Other(u32, Vec<u8>),
}

impl From<u32> for RegistryValue {
    fn from(value: u32) -> Self {
        Self::Dword(value)
    }
}

impl From<u64> for RegistryValue {
    fn from(value: u64) -> Self {
        Self::Qword(value)
    }
}

impl From<&str> for RegistryValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for RegistryValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes)
    }
}

impl RegistryValue {
    /// The type: `REG_SZ` or another `REG_*` constant.
    #[must_use]
    pub const fn kind(&self) -> u32 {
        match self {
            Self::Text(_) => 1,
            Self::Binary(_) => 3,
            Self::Dword(_) => 4,
            Self::Texts(_) => 7,
            Self::Qword(_) => 11,
            Self::Other(kind, _) => *kind,
        }
    }

    /// The value's bytes, as the registry stores them.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Dword(value) => value.to_le_bytes().to_vec(),
            Self::Qword(value) => value.to_le_bytes().to_vec(),
            Self::Text(text) => text_bytes(text),
            Self::Texts(texts) => {
                let mut bytes: Vec<u8> = texts.iter().flat_map(|text| text_bytes(text)).collect();
                bytes.extend([0, 0]);
                bytes
            }
            Self::Binary(bytes) | Self::Other(_, bytes) => bytes.clone(),
        }
    }

    /// Returns the value of a `REG_*` type with these bytes. Bytes that do not fit the type are kept as
    /// they are.
    #[must_use]
    pub fn from_bytes(kind: u32, bytes: Vec<u8>) -> Self {
        let known = match kind {
            1 => text_of(&bytes).map(Self::Text),
            3 => return Self::Binary(bytes),
            4 => {
                let value = bytes.as_slice().try_into().ok();
                value.map(|value| Self::Dword(u32::from_le_bytes(value)))
            }
            11 => {
                let value = bytes.as_slice().try_into().ok();
                value.map(|value| Self::Qword(u64::from_le_bytes(value)))
            }
            _ => None,
        };
        known.unwrap_or(Self::Other(kind, bytes))
    }
}

/// Returns the text of a `REG_SZ` value, which ends with a NUL, if its bytes are UTF-16 with one NUL.
fn text_of(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    let (last, text) = units.split_last()?;
    let text = String::from_utf16(text).ok()?;
    (*last == 0 && !text.contains('\0')).then_some(text)
}

/// The path of the keys of services.
const SERVICES: &str = r"\Registry\Machine\System\CurrentControlSet\Services";

/// Returns the path of a service's parameters key.
pub fn parameters_path(service: &str) -> String {
    format!(r"{SERVICES}\{service}\Parameters")
}

/// Returns the path of a device's hardware key, by its instance path.
pub fn hardware_path(instance: &str) -> String {
    format!(r"\Registry\Machine\System\CurrentControlSet\Enum\{instance}\Device Parameters")
}

/// Returns the path of a device's software key, by the name of its driver key.
pub fn software_path(driver_key: &str) -> String {
    format!(r"\Registry\Machine\System\CurrentControlSet\Control\Class\{driver_key}")
}

/// The values of a key, by their names in lower case, each with its name.
type Values = BTreeMap<String, (String, RegistryValue)>;

/// The registry's keys by their paths. Paths and names are compared without regard to case.
#[derive(Default)]
pub struct Registry(BTreeMap<String, Values>);

impl Registry {
    /// Creates a key, if it does not exist. Returns whether it is new.
    pub fn create(&mut self, path: &str) -> bool {
        let is_new = !self.exists(path);
        self.0.entry(path.to_lowercase()).or_default();
        is_new
    }

    /// Returns whether a key exists: it was created, or one below it was.
    pub fn exists(&self, path: &str) -> bool {
        let path = path.to_lowercase();
        let below = format!(r"{path}\");
        self.0
            .range(path.clone()..)
            .take_while(|(key, _)| key.starts_with(&path))
            .any(|(key, _)| *key == path || key.starts_with(&below))
    }

    /// Removes a key. Returns `false` if it has keys below it.
    pub fn remove(&mut self, path: &str) -> bool {
        let path = path.to_lowercase();
        let below = format!(r"{path}\");
        if self.0.keys().any(|key| key.starts_with(&below)) {
            return false;
        }
        self.0.remove(&path);
        true
    }

    /// Sets a value. Creates the key, if it does not exist.
    pub fn set(&mut self, path: &str, name: &str, value: RegistryValue) {
        self.0
            .entry(path.to_lowercase())
            .or_default()
            .insert(name.to_lowercase(), (name.to_owned(), value));
    }

    /// Returns a value.
    pub fn get(&self, path: &str, name: &str) -> Option<RegistryValue> {
        let values = self.0.get(&path.to_lowercase())?;
        values
            .get(&name.to_lowercase())
            .map(|(_, value)| value.clone())
    }

    /// Removes a value. Returns whether there was one.
    pub fn remove_value(&mut self, path: &str, name: &str) -> bool {
        self.0
            .get_mut(&path.to_lowercase())
            .is_some_and(|values| values.remove(&name.to_lowercase()).is_some())
    }
}
