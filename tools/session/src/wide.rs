//! NUL-terminated UTF-16, for Windows functions.

use std::{ffi::OsStr, os::windows::ffi::OsStrExt};

/// Returns a string as NUL-terminated UTF-16.
#[must_use]
pub fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// Returns the strings in a list (`REG_MULTI_SZ`). Each string ends with a NUL, and the list ends
/// with another NUL.
#[must_use]
pub fn list(units: &[u16]) -> Vec<String> {
    units
        .split(|unit| *unit == 0)
        .take_while(|text| !text.is_empty())
        .map(String::from_utf16_lossy)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_with_a_nul() {
        assert_eq!(wide("ab"), [97, 98, 0]);
    }

    #[test]
    fn lists_end_with_an_empty_text() {
        let mut units = wide("one");
        units.extend(wide("two"));
        units.push(0);
        assert_eq!(list(&units), ["one", "two"]);
        assert_eq!(list(&[0, 0]), [""; 0]);
    }
}
