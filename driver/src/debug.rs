//! Messages for a kernel debugger.

use core::{
    ffi::CStr,
    fmt::{self, Write},
};

use wdk_sys::ntddk::DbgPrint;

/// The maximum length of a message in bytes; longer ones are truncated.
const MAX_MESSAGE: usize = 200;

/// A message that is formatted on the stack.
struct Message {
    bytes: [u8; MAX_MESSAGE],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            let place = self.bytes.get_mut(self.length).ok_or(fmt::Error)?;
            *place = byte;
            self.length = self.length.saturating_add(1);
        }
        Ok(())
    }
}

/// Prints an error with the driver's name before it. IRQL: `PASSIVE_LEVEL` in this driver; in
/// general, any level at which the error can be formatted.
///
/// `wdk::println!` is not used because its buffer can panic.
pub fn print(error: &dyn fmt::Display) {
    let mut message = Message { bytes: [0; MAX_MESSAGE], length: 0 };
    // A truncated message is better than a panic.
    let _cut = write!(message, "etw_sample_driver: {error}\n\0");
    if let Some(last) = message.bytes.last_mut() {
        *last = 0;
    }
    let Ok(text) = CStr::from_bytes_until_nul(&message.bytes) else {
        return;
    };
    // SAFETY: the format takes one NUL-terminated string.
    unsafe { DbgPrint(c"%s".as_ptr(), text.as_ptr()) };
}
