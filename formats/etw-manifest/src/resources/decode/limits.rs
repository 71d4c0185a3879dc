//! Limits on the amount of data that a resource can describe.

use super::error::DecodeError;

/// The maximum number of fields, map entries and event keywords in a resource, in total.
const MAX_FIELDS: usize = 1 << 18;
/// The maximum total length of names in UTF-16 units; each reference to a name counts.
const MAX_TEXT: usize = 1 << 24;
/// The maximum total size of the lists that are read, as a multiple of the resource's size. Real
/// lists do not overlap; without a limit, a malicious resource could reuse the same bytes for any
/// number of entries.
const MAX_REPETITION: usize = 4;

/// The amount of data that the rest of a resource can describe.
pub struct Limits {
    fields: usize,
    text: usize,
    /// The remaining size of lists, in bytes.
    lists: usize,
}

impl Limits {
    /// Returns the full limits for a resource of `size` bytes.
    pub const fn new(size: usize) -> Self {
        Self { fields: MAX_FIELDS, text: MAX_TEXT, lists: size.saturating_mul(MAX_REPETITION) }
    }

    pub fn fields(&mut self, count: usize) -> Result<(), DecodeError> {
        let left = self.fields.checked_sub(count);
        self.fields = left.ok_or(DecodeError::TooManyFields(MAX_FIELDS))?;
        Ok(())
    }

    /// Deducts a list's size in bytes.
    pub fn list(&mut self, size: usize) -> Result<(), DecodeError> {
        let left = self.lists.checked_sub(size);
        self.lists = left.ok_or(DecodeError::Repetition(MAX_REPETITION))?;
        Ok(())
    }

    pub fn text(&mut self, text: String) -> Result<String, DecodeError> {
        let left = self.text.checked_sub(text.len());
        self.text = left.ok_or(DecodeError::TooMuchText(MAX_TEXT))?;
        Ok(text)
    }
}
