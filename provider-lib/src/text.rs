//! Text of limited length, and the positions at which text can be cut.

use core::fmt;

/// Returns the largest size, up to `room` bytes, to which UTF-8 text can be cut.
pub fn end_of_utf8(bytes: &[u8], room: usize) -> usize {
    // A character has up to three bytes after its first one. A longer run is not UTF-8, which is
    // possible in a C string: it has no characters to keep whole.
    (0..=3)
        .map(|back| room.wrapping_sub(back))
        .find(|end| bytes.get(*end).is_some_and(|byte| byte & 0xC0 != 0x80))
        .unwrap_or(room)
}

/// Returns the largest size, up to `room` bytes, to which UTF-16 text can be cut.
pub fn end_of_utf16(bytes: &[u8], room: usize) -> usize {
    let end = room & !1;
    let unit = |at: usize| match bytes.get(at..at.wrapping_add(2)) {
        Some([low, high]) => u16::from_le_bytes([*low, *high]),
        _ => 0,
    };
    let before = end.wrapping_sub(2);
    if is_pair(unit(before), unit(end)) { before } else { end }
}

/// Returns whether two UTF-16 code units form a surrogate pair.
pub const fn is_pair(first: u16, second: u16) -> bool {
    first & 0xFC00 == 0xD800 && second & 0xFC00 == 0xDC00
}

/// Text that keeps the bytes that fit, and counts the bytes up to the end of the first part that
/// does not fit. It refuses later parts, so that formatting ends.
pub struct Text<'a> {
    room: &'a mut [u8],
    /// The number of bytes that were kept.
    pub kept: usize,
    /// The number of bytes of all parts, including the part that was cut.
    pub length: usize,
    /// True if a part was cut.
    pub is_cut: bool,
}

impl<'a> Text<'a> {
    /// Creates an empty text with this room.
    pub const fn new(room: &'a mut [u8]) -> Self {
        Self { room, kept: 0, length: 0, is_cut: false }
    }

    /// Formats a message into the room.
    pub fn format(room: &'a mut [u8], message: fmt::Arguments<'_>) -> Self {
        let mut text = Self::new(room);
        // An error that a value's own formatting returns ends the text.
        let _error = fmt::write(&mut text, message);
        text
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        self.length = self.length.saturating_add(text.len());
        let room = self.room.get_mut(self.kept..).unwrap_or_default();
        let fits = text.floor_char_boundary(room.len());
        let text_bytes = text.as_bytes().get(..fits).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(text_bytes) {
            *to = if *from == 0 { b' ' } else { *from };
        }
        self.kept = self.kept.saturating_add(fits);
        self.is_cut = fits < text.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

// The macros limit the stack of a write by this size (`FORMATTED` in the schema's layout).
const _: () = assert!(size_of::<Formatted>() == 272);

/// A formatted string in an event, of at most [`Self::MAX`] bytes.
pub struct Formatted {
    bytes: [u8; Self::MAX],
    length: usize,
    is_cut: bool,
}

impl Formatted {
    /// The maximum length in bytes. The string is on the stack while its event is written.
    pub const MAX: usize = 256;

    /// Formats a string.
    #[must_use]
    #[inline(never)]
    pub fn new(message: fmt::Arguments<'_>) -> Self {
        let mut bytes = [0; Self::MAX];
        let text = Text::format(&mut bytes, message);
        let (length, is_cut) = (text.kept, text.is_cut);
        Self { bytes, length, is_cut }
    }

    /// Returns the string's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Returns whether the string was cut.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        let text = "aé€😀";
        for room in 0..text.len() {
            let end = end_of_utf8(text.as_bytes(), room);
            assert!(text.is_char_boundary(end) && end <= room && room - end < 4);
        }
        let units = [0x61_u16, 0xD83D, 0xDE00, 0x62];
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let ends: Vec<usize> = (0..bytes.len()).map(|at| end_of_utf16(&bytes, at)).collect();
        assert_eq!(ends, [0, 0, 2, 2, 2, 2, 6, 6]);
    }

    #[test]
    fn bytes_that_are_no_text_are_cut_anywhere() {
        assert_eq!(end_of_utf8(&[0x80; 9], 7), 7);
        assert_eq!(end_of_utf8(&[0x80; 9], 1), 1);
        // Surrogates in the wrong order, and unpaired surrogates.
        for units in [[0xDC00_u16, 0xD800], [0xD800, 0xD800], [0xDC00, 0xDC00], [0xD800, 0x61]] {
            let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
            assert_eq!(end_of_utf16(&bytes, 2), 2);
        }
    }
}
