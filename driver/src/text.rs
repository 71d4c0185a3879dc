//! UTF-16 strings.

/// Converts ASCII text to UTF-16 at compile time.
pub const fn utf16<const N: usize>(text: &str) -> [u16; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() == N, "the array must be as long as the text");
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = bytes[at] as u16;
        at += 1;
    }
    units
}
