//! Bounds on what a resource can describe, however small it is.

use super::error::DecodeError;

/// The fields, entries of maps, and keywords of events that a resource may describe in all.
const MAX_FIELDS: usize = 1 << 18;
/// The UTF-16 units of all names that a resource may refer to, however often.
const MAX_TEXT: usize = 1 << 24;

/// The rest of what a resource may describe.
pub struct Limits {
    fields: usize,
    text: usize,
}

impl Limits {
    /// The limits of a resource of which nothing has been read yet.
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
