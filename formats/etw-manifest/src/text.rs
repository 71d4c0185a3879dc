//! Texts of files, and numbers in them.

/// Returns the text of a file in UTF-8 or in UTF-16; `None` if the bytes are neither. UTF-16 is
/// recognized by its byte order mark or by its first character, `<`.
#[must_use]
pub fn text(bytes: &[u8]) -> Option<String> {
    let wide = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let pairs = bytes.chunks(2);
        let units = pairs.map(|pair| match *pair {
            [first, second] => Some(unit([first, second])),
            _ => None,
        });
        String::from_utf16(&units.collect::<Option<Vec<u16>>>()?).ok()
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => wide(rest, u16::from_be_bytes),
        [b'<', 0, ..] => wide(bytes, u16::from_le_bytes),
        [0, b'<', ..] => wide(bytes, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    }
}

/// Parses a number in a manifest: decimal digits, or hexadecimal digits after `0x`.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    // `parse` would accept a sign.
    let is_number = digits.starts_with(|first: char| first.is_digit(radix));
    is_number.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
