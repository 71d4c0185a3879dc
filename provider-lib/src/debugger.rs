//! Messages for a debugger.

use core::{ffi::CStr, fmt};

use crate::{ffi, text::Text};

/// The maximum length of a message in bytes. `DbgPrint` sends at most 512.
const MAX: usize = 254;

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
/// `DIRQL` or below, if the message's values can be formatted there.
pub fn debug_print(message: fmt::Arguments<'_>) {
    // Including the line feed and NUL.
    let mut bytes = [0; MAX + 2];
    let length = Text::format(bytes.get_mut(..MAX).unwrap_or_default(), message).kept;
    if let Some(end) = bytes.get_mut(length) {
        *end = b'\n';
    }
    if let Ok(text) = CStr::from_bytes_until_nul(&bytes) {
        ffi::print(text);
    }
}
