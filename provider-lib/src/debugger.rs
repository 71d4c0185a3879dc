//! Messages for a debugger.

use core::{ffi::CStr, fmt};

use crate::{event, ffi, irql, text::Text};

/// The maximum length of a message in bytes. `DbgPrint` sends at most 512.
const MAX: usize = 254;
/// The maximum length of an event's line in bytes, without its end.
const MAX_EVENT: usize = 507;
/// The end of an event's line that was cut.
const CUT: &[u8] = b"...\n";

/// Prints a message of at most 254 bytes, and a line feed, in the kernel debugger (`DbgPrint`) or, in
/// user mode, in the program's debugger (`OutputDebugStringA`). A longer message is cut.
///
/// Does not allocate and does not panic. `wdk::println!` formats into a buffer that can panic.
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
/// `DIRQL` or below, if the message's values can be formatted there. Above it the function does
/// nothing.
pub fn debug_print(message: fmt::Arguments<'_>) {
    if irql::check(ffi::MAX_DIRQL).is_err() {
        return;
    }
    // Including the line feed and NUL.
    let mut bytes = [0; MAX + 2];
    let length = Text::format(bytes.get_mut(..MAX).unwrap_or_default(), message).kept;
    if let Some(line) = end(&mut bytes, length, b"\n") {
        ffi::print(line);
    }
}

/// Prints a line about an event, as a message with this level (`DPFLTR_*_LEVEL`).
pub fn print_event(level: u32, write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) {
    let mut bytes = [0; MAX_EVENT + CUT.len() + 1];
    let mut text = Text::new(bytes.get_mut(..MAX_EVENT).unwrap_or_default());
    // A value that does not fit ends the line.
    let _cut = write(&mut text);
    let (length, is_cut) = (text.kept, text.is_cut);
    if let Some(line) = end(&mut bytes, length, if is_cut { CUT } else { b"\n" }) {
        ffi::print_with_level(level, line);
    }
}

/// Puts the end of a line after its text. The bytes after the end are zero.
fn end<'a>(bytes: &'a mut [u8], length: usize, end: &[u8]) -> Option<&'a CStr> {
    event::put(bytes.get_mut(length..)?, end);
    CStr::from_bytes_until_nul(bytes).ok()
}
