//! Text as drivers and the registry have it.

use super::framework::Data;
use crate::ground::{abi::UnicodeString, arena::Block, memory};

/// UTF-16 with a NUL at the end.
pub fn text_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// A string object.
pub struct TextData {
    text: Block,
    /// In bytes, without the NUL.
    length: u16,
}

impl Data for TextData {
    const NAME: &'static str = "WDFSTRING";
}

impl TextData {
    /// Returns a copy of a text; none if it is longer than a counted string can be.
    pub fn new(text: &str) -> Option<Self> {
        let bytes = text_bytes(text);
        let length = u16::try_from(bytes.len()).ok()?.checked_sub(2)?;
        let block = Block::zeroed(bytes.len());
        memory::write_bytes(block.address(), &bytes).ok()?;
        Some(Self {
            text: block,
            length,
        })
    }

    /// Returns the string as a driver sees it; its text lives as long as the object.
    pub const fn counted(&self) -> UnicodeString {
        UnicodeString {
            length: self.length,
            maximum_length: self.length + 2,
            reserved: 0,
            buffer: self.text.address(),
        }
    }
}
