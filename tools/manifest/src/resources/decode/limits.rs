//! Limits on the amount of data that a resource can describe.

use super::error::DecodeError;

/// The maximum total number of fields, map entries and events' keywords in a resource.
const MAX_FIELDS: usize = 1 << 18;
/// The maximum total number of UTF-16 units of names, counting each reference.
const MAX_TEXT: usize = 1 << 24;

/// The remaining allowance of a resource.
pub struct Limits {
    fields: usize,
    text: usize,
}

impl Limits {
    /// Returns the full allowance.
    pub const fn new() -> Self {
        Self {
            fields: MAX_FIELDS,
            text: MAX_TEXT,
        }
    }

    pub fn fields(&mut self, count: usize) -> Result<(), DecodeError> {
        let left = self.fields.checked_sub(count);
        self.fields = left.ok_or(DecodeError::TooManyFields(MAX_FIELDS))?;
        Ok(())
    }

    pub fn text(&mut self, text: String) -> Result<String, DecodeError> {
        let left = self.text.checked_sub(text.len());
        self.text = left.ok_or(DecodeError::TooMuchText(MAX_TEXT))?;
        Ok(text)
    }
}
