//! Printable forms of bytes and untrusted text.

use std::fmt;

pub mod text;

/// Formats bytes as hexadecimal digits, two per byte.
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Formats text on one line, with escaped control characters, so that it cannot affect a terminal.
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            c if c.is_control() || is_format_control(c) => write!(f, "{}", c.escape_default()),
            c => write!(f, "{c}"),
        })
    }
}

/// Returns true for characters that reorder or hide other text.
const fn is_format_control(c: char) -> bool {
    matches!(c,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}
