//! Messages for a debugger.

use core::{
    ffi::CStr,
    fmt::{self, Write},
};

use crate::{ffi, text::end_of_utf8};

/// The size of a message in bytes, with its NUL. `DbgPrint` sends at most 512 bytes.
const SIZE: usize = 256;

struct Message {
    bytes: [u8; SIZE],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // The last two bytes are for the end of the line and NUL.
        let room = SIZE.saturating_sub(2).saturating_sub(self.length);
        let end = if text.len() <= room { text.len() } else { end_of_utf8(text.as_bytes(), room) };
        let places = self.bytes.iter_mut().skip(self.length);
        for (place, byte) in places.zip(text.as_bytes().iter().take(end)) {
            *place = *byte;
        }
        self.length = self.length.saturating_add(end);
        if end == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Prints a message of at most 254 bytes, and a line feed, in the kernel debugger (`DbgPrint`) or, in
/// user mode, in the program's debugger (`OutputDebugStringA`). A longer message is cut.
///
/// Nothing is allocated, and nothing panics. `wdk::println!` formats in a buffer that can panic.
///
/// ```no_run
/// # #[wdk_etw::provider(name = "Contoso.Driver")]
/// # mod trace {}
/// if let Err(error) = trace::unregister() {
///     wdk_etw::debug_print(format_args!("contoso_driver: {error}"));
/// }
/// ```
///
/// # IRQL
///
/// `DIRQL` or below, if the message's values can be formatted there.
pub fn debug_print(message: fmt::Arguments<'_>) {
    let mut text = Message { bytes: [0; SIZE], length: 0 };
    // A cut message is better than none.
    let _cut = text.write_fmt(message);
    if let Some(end) = text.bytes.get_mut(text.length) {
        *end = b'\n';
    }
    if let Ok(text) = CStr::from_bytes_until_nul(&text.bytes) {
        ffi::print(text);
    }
}
