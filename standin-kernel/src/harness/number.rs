//! Decimal and hexadecimal numbers in command lines and scripts.

/// Parses a decimal number, or a hexadecimal number after `0x`.
pub fn number<T: TryFrom<u64>>(word: &str) -> Result<T, String> {
    let parsed = word
        .strip_prefix("0x")
        .map_or_else(|| word.parse(), |digits| u64::from_str_radix(digits, 16));
    parsed
        .ok()
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| format!("`{word}` is not a number, or is too large"))
}
