//! Reads a resource at untrusted offsets.

use super::error::DecodeError;

/// A resource's bytes.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    name: &'static str,
    data: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub const fn new(name: &'static str, data: &'a [u8]) -> Self {
        Self { name, data }
    }

    pub const fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns `length` bytes at `offset`.
    pub fn slice(
        &self,
        offset: usize,
        length: usize,
        what: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        let end = offset.checked_add(length);
        end.and_then(|end| self.data.get(offset..end)).ok_or(DecodeError::Overrun {
            resource: self.name,
            what,
            offset,
        })
    }

    fn array<const N: usize>(
        &self,
        offset: usize,
        what: &'static str,
    ) -> Result<[u8; N], DecodeError> {
        let bytes = self.slice(offset, N, what)?;
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    pub fn u8(&self, offset: usize, what: &'static str) -> Result<u8, DecodeError> {
        self.array(offset, what).map(u8::from_le_bytes)
    }

    pub fn u16(&self, offset: usize, what: &'static str) -> Result<u16, DecodeError> {
        self.array(offset, what).map(u16::from_le_bytes)
    }

    pub fn u32(&self, offset: usize, what: &'static str) -> Result<u32, DecodeError> {
        self.array(offset, what).map(u32::from_le_bytes)
    }

    pub fn u64(&self, offset: usize, what: &'static str) -> Result<u64, DecodeError> {
        self.array(offset, what).map(u64::from_le_bytes)
    }

    pub fn guid(&self, offset: usize, what: &'static str) -> Result<[u8; 16], DecodeError> {
        self.array(offset, what)
    }

    /// Reads a 32-bit offset or count as a `usize`.
    pub fn place(&self, offset: usize, what: &'static str) -> Result<usize, DecodeError> {
        // A value that does not fit is larger than every resource.
        self.u32(offset, what).map(|value| value as usize)
    }

    /// Checks the tag at `offset`.
    pub fn tag(&self, offset: usize, tag: [u8; 4]) -> Result<(), DecodeError> {
        let found = self.slice(offset, tag.len(), "tag")?;
        if found == tag { Ok(()) } else { Err(DecodeError::Tag { tag, offset }) }
    }

    /// Returns the offsets of fixed-size entries, all of which must be inside the resource.
    pub fn entries(
        &self,
        start: usize,
        count: usize,
        size: usize,
        what: &'static str,
    ) -> Result<impl Iterator<Item = usize> + use<>, DecodeError> {
        let length = count.saturating_mul(size);
        self.slice(start, length, what)?;
        Ok((0..count).map(move |number| start + number * size))
    }

    /// Returns UTF-16 text up to a NUL or the end of the bytes.
    pub fn text(
        &self,
        offset: usize,
        length: usize,
        what: &'static str,
    ) -> Result<String, DecodeError> {
        let bytes = self.slice(offset, length, what)?;
        let (units, _) = bytes.as_chunks::<2>();
        let units: Vec<u16> =
            units.iter().copied().map(u16::from_le_bytes).take_while(|unit| *unit != 0).collect();
        Ok(String::from_utf16_lossy(&units))
    }

    /// Reads NUL-terminated text.
    pub fn open_text(&self, offset: usize, what: &'static str) -> Result<String, DecodeError> {
        self.slice(offset, 2, what)?;
        self.text(offset, self.len() - offset, what)
    }

    /// Reads text preceded by its size.
    pub fn sized_text(&self, offset: usize, what: &'static str) -> Result<String, DecodeError> {
        let size = self.place(offset, what)?;
        let length = size.checked_sub(4).ok_or(DecodeError::Overrun {
            resource: self.name,
            what,
            offset,
        })?;
        self.text(offset + 4, length, what)
    }
}
