//! String objects, whose strings have the format that drivers use.

use super::framework::Data;
use crate::{
    execution::strings::{text_bytes, units},
    ground::{abi::UnicodeString, arena::Block, memory},
};

/// A string object.
#[derive(Default)]
pub struct TextData {
    /// The string, unless none was ever assigned.
    text: Option<Block>,
    /// The length in bytes, without the NUL.
    length: u16,
}

impl Data for TextData {
    const NAME: &'static str = "WDFSTRING";
    const IS_PASSIVE: bool = true;
}

impl TextData {
    /// Creates a string object from `text`, or returns `None` if `text` is too long for a
    /// `UNICODE_STRING`.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text_bytes(text);
        let length = u16::try_from(bytes.len()).ok()?.checked_sub(2)?;
        let block = Block::zeroed(bytes.len());
        memory::write_bytes(block.address(), &bytes).ok()?;
        Some(Self { text: Some(block), length })
    }

    /// Returns the string.
    pub fn to_text(&self) -> String {
        let bytes = memory::read_bytes(self.counted().buffer, usize::from(self.length));
        String::from_utf16_lossy(&units(&bytes.unwrap_or_default()))
    }

    /// Returns the counted string for a driver. It is valid as long as the object exists.
    pub fn counted(&self) -> UnicodeString {
        let text = self.text.as_ref();
        let (maximum_length, buffer) =
            text.map_or((0, 0), |text| (self.length + 2, text.address()));
        UnicodeString { length: self.length, maximum_length, buffer, ..Default::default() }
    }
}
