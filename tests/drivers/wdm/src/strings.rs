//! The names of the device, and strings as the kernel takes them.

use wdk_sys::UNICODE_STRING;

/// The name of the device.
pub static NAME: [u16; 15] = utf16(br"\Device\WdmTest");
/// Its symbolic link.
pub static LINK: [u16; 19] = utf16(br"\DosDevices\WdmTest");

/// Returns the UTF-16 units of a text.
pub const fn utf16<const N: usize>(text: &[u8; N]) -> [u16; N] {
    let mut units = [0; N];
    let mut at = 0;
    while at < N {
        units[at] = text[at] as u16;
        at += 1;
    }
    units
}

/// Returns a counted string.
pub const fn counted(text: &'static [u16]) -> UNICODE_STRING {
    let length = 2 * text.len() as u16;
    UNICODE_STRING { Length: length, MaximumLength: length, Buffer: text.as_ptr().cast_mut() }
}
