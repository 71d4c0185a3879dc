//! The values of registry keys.

use crate::execution::strings::{text_bytes, units};

/// The maximum size of a value in bytes. The registry format limits values to 1 MB.
pub const MAX_VALUE: usize = 1 << 20;

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
    /// Returns the type: `REG_SZ` or another `REG_*` constant.
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

    /// Returns the value's bytes, as the registry stores them.
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

    /// Creates a value from a `REG_*` type and its bytes. Bytes that do not match the type are
    /// stored unchanged.
    #[must_use]
    pub fn from_bytes(kind: u32, bytes: Vec<u8>) -> Self {
        let known = match kind {
            1 => text_of(&bytes).map(Self::Text),
            3 => return Self::Binary(bytes),
            4 => {
                let value = bytes.as_slice().try_into().ok();
                value.map(|value| Self::Dword(u32::from_le_bytes(value)))
            }
            7 => texts_of(&bytes).map(Self::Texts),
            11 => {
                let value = bytes.as_slice().try_into().ok();
                value.map(|value| Self::Qword(u64::from_le_bytes(value)))
            }
            _ => None,
        };
        known.unwrap_or(Self::Other(kind, bytes))
    }
}

/// Returns the string in a `REG_SZ` value, if its bytes are UTF-16 with exactly one NUL, at the
/// end.
fn text_of(bytes: &[u8]) -> Option<String> {
    if !bytes.len().is_multiple_of(2) {
        return None;
    }
    let units = units(bytes);
    let (last, text) = units.split_last()?;
    let text = String::from_utf16(text).ok()?;
    (*last == 0 && !text.contains('\0')).then_some(text)
}

/// Returns the strings in a `REG_MULTI_SZ` value, if [`RegistryValue::bytes`] would produce the
/// same bytes for them.
fn texts_of(bytes: &[u8]) -> Option<Vec<String>> {
    let texts = split_list(bytes);
    let value = RegistryValue::Texts(texts.clone());
    (value.bytes() == bytes).then_some(texts)
}

/// Returns the strings in the bytes of a `REG_MULTI_SZ` value, up to the first empty string.
pub fn split_list(bytes: &[u8]) -> Vec<String> {
    units(bytes)
        .split(|unit| *unit == 0)
        .take_while(|text| !text.is_empty())
        .map(String::from_utf16_lossy)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_bytes() {
        let texts = RegistryValue::Texts(vec!["a".to_owned(), "bc".to_owned()]);
        for (kind, bytes) in [
            (1, text_bytes("text")),
            (1, vec![b'a', 0]),
            (2, text_bytes("%X%")),
            (4, vec![1, 2, 3, 4]),
            (4, vec![1, 2]),
            (7, texts.bytes()),
            (7, text_bytes("no end")),
            (7, vec![0, 0]),
            (7, vec![]),
            (11, vec![1, 2, 3, 4, 5, 6, 7, 8]),
            (0, vec![9]),
        ] {
            let value = RegistryValue::from_bytes(kind, bytes.clone());
            assert_eq!((value.kind(), value.bytes()), (kind, bytes), "{value:?}");
        }
        assert_eq!(RegistryValue::from_bytes(7, texts.bytes()), texts);
    }
}
