//! Strings that drivers pass and receive.

use super::context::Context;
use crate::ground::abi::UnicodeString;

/// Returns the counted string that the driver passed.
pub fn read_unicode_string(context: &Context, address: u64) -> String {
    let string: UnicodeString = context.read(address);
    let bytes = context.read_bytes(string.buffer, usize::from(string.length));
    String::from_utf16_lossy(&units(&bytes))
}

/// Stores a counted string and its characters in a block that `allocate` allocates by size. Returns the
/// block, or `None` if there is no memory or the text is too long.
pub fn store_unicode_string(
    context: &Context,
    text: &str,
    allocate: impl FnOnce(usize) -> Option<u64>,
) -> Option<u64> {
    const STRING: usize = size_of::<UnicodeString>();
    let bytes = text_bytes(text);
    let maximum_length = u16::try_from(bytes.len()).ok()?;
    let block = allocate(STRING + bytes.len())?;
    let buffer = block + STRING as u64;
    let length = maximum_length.saturating_sub(2);
    context.write(block, &UnicodeString { length, maximum_length, buffer, ..Default::default() });
    context.write_bytes(buffer, &bytes);
    Some(block)
}

/// Decodes little-endian UTF-16 bytes to units.
pub fn units(bytes: &[u8]) -> Vec<u16> {
    let (pairs, _) = bytes.as_chunks();
    pairs.iter().copied().map(u16::from_le_bytes).collect()
}

/// Encodes a string as little-endian UTF-16 bytes with a terminating NUL.
pub fn text_bytes(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}
