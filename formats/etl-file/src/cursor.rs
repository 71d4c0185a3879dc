//! Reads untrusted bytes without reading past their end.

/// A position in a byte slice.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub const fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    /// Returns the number of bytes consumed so far, at most the length of the slice.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// Returns the remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.at..).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    /// Consumes the next `n` bytes; if fewer remain, consumes none.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(n)?;
        let taken = self.data.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// Skips `n` bytes.
    pub fn skip(&mut self, n: usize) -> Option<&mut Self> {
        self.take(n)?;
        Some(self)
    }

    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// Consumes the bytes up to and including a NUL, and returns those before it.
    pub fn until_nul(&mut self) -> Option<&'a [u8]> {
        let length = self.rest().iter().position(|&b| b == 0)?;
        let text = self.take(length)?;
        self.take(1)?;
        Some(text)
    }
}

/// Decodes UTF-16LE bytes up to a NUL, or to the end. Ignores an odd last byte.
pub fn utf16_until_nul(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&unit| u16::from_le_bytes(unit))
        .take_while(|&unit| unit != 0)
        .collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_past_the_end_consumes_nothing() {
        let mut cursor = Cursor::new(&[1, 2, 3]);
        assert_eq!(cursor.u32(), None);
        assert_eq!(cursor.take(usize::MAX), None);
        assert_eq!(cursor.u16(), Some(0x0201));
        assert_eq!(cursor.position(), 2);
        assert_eq!(cursor.rest(), [3]);
        assert_eq!(cursor.until_nul(), None);
        assert_eq!(cursor.rest(), [3]);
    }

    #[test]
    fn text_ends_at_its_nul() {
        let mut cursor = Cursor::new(b"ab\0c");
        assert_eq!(cursor.until_nul(), Some(b"ab".as_slice()));
        assert_eq!(cursor.rest(), b"c");
        assert_eq!(utf16_until_nul(b"a\0b\0\0\0c\0"), "ab");
        assert_eq!(utf16_until_nul(b"a\0b"), "a");
    }
}
