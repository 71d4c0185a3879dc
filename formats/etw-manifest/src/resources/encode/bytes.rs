//! Writes little-endian integers and UTF-16, at the end or in reserved space.

use std::num::TryFromIntError;

/// A buffer to which bytes are appended; offsets count from the start.
#[derive(Debug, Default)]
pub struct Bytes(pub Vec<u8>);

/// The size of the length prefix of a string. The prefixed string consists of its size, its
/// characters, a NUL, and zeros up to a multiple of four.
const PREFIX: usize = 4;

impl Bytes {
    /// Returns the offset of the next byte.
    pub fn offset(&self) -> Result<u32, TryFromIntError> {
        u32::try_from(self.0.len())
    }

    pub fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    pub fn slice(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends zeros up to a multiple of `to` bytes from the start.
    pub fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    /// Reserves zeros for a later value, and returns their offset.
    pub fn reserve(&mut self, length: usize) -> usize {
        let at = self.0.len();
        self.0.resize(at + length, 0);
        at
    }

    /// Writes a value to its reserved space.
    pub fn put_u32(&mut self, at: usize, value: u32) {
        if let Some(place) = self.0.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Appends the characters without a NUL.
    pub fn utf16(&mut self, text: &str) {
        self.0.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    }

    /// Appends a NUL-terminated string.
    pub fn zero_terminated(&mut self, text: &str) {
        self.utf16(text);
        self.u16(0);
    }

    /// Appends a prefixed string.
    pub fn prefixed(&mut self, text: &str) -> Result<(), TryFromIntError> {
        self.u32(u32::try_from(prefixed_size(text))?);
        let start = self.0.len() - PREFIX;
        self.zero_terminated(text);
        self.0.resize(start + prefixed_size(text), 0);
        Ok(())
    }

    /// Writes the length of the part from `start` to the current end, at the reserved offset `at`.
    pub fn put_length(&mut self, at: usize, start: usize) -> Result<(), TryFromIntError> {
        let length = u32::try_from(self.0.len() - start)?;
        self.put_u32(at, length);
        Ok(())
    }
}

/// Returns the size of a prefixed string in bytes.
pub fn prefixed_size(text: &str) -> usize {
    let units = text.encode_utf16().count() + 1;
    (PREFIX + units * 2).next_multiple_of(4)
}
