//! Counted strings and object attributes as arguments.

use wdk_sys::PVOID;

use crate::call::at;

/// The maximum number of characters in a name.
const LONGEST: usize = 160;

/// Calls `body` with the address of a counted string.
pub fn with_string<R>(text: &[u8], body: impl FnOnce(PVOID) -> R) -> R {
    let mut units = [0_u16; LONGEST];
    for (unit, byte) in units.iter_mut().zip(text) {
        *unit = u16::from(*byte);
    }
    let length = 2 * text.len() as u64;
    let mut string = [length | length << 16, units.as_mut_ptr() as u64];
    body(at(&mut string))
}

/// Calls `body` with the address of a zero-terminated string.
pub fn with_text<R>(text: &[u8], body: impl FnOnce(PVOID) -> R) -> R {
    let mut units = [0_u16; LONGEST];
    for (unit, byte) in units.iter_mut().zip(text) {
        *unit = u16::from(*byte);
    }
    body(units.as_mut_ptr().cast())
}

/// Calls `body` with the address of object attributes: a root handle, a name and flags.
pub fn with_attributes<R>(
    root: PVOID,
    name: &[u8],
    flags: u64,
    body: impl FnOnce(PVOID) -> R,
) -> R {
    with_string(name, |name| {
        let mut attributes = [48, root as u64, name as u64, flags, 0, 0];
        body(at(&mut attributes))
    })
}

/// Returns true if the UTF-16 bytes are equal to these characters.
pub fn is_text(bytes: &[u8], text: &[u8]) -> bool {
    bytes.len() == 2 * text.len()
        && bytes.chunks_exact(2).zip(text).all(|(unit, byte)| unit == [*byte, 0])
}
