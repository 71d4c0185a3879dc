//! Messages for a kernel debugger.

use core::{
    ffi::CStr,
    fmt::{self, Write},
};

use wdk_sys::ntddk::DbgPrint;

/// The most bytes of a message; the rest is cut.
const MOST: usize = 200;

/// A message that is being put together on the stack.
struct Message {
    bytes: [u8; MOST],
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

/// Prints an error with the driver's name before it. IRQL: any at which the error can be
/// shown; messages of this driver's are printed at `PASSIVE_LEVEL`.
///
/// `wdk::println!` would do, but its buffer can panic.
pub fn print(error: &dyn fmt::Display) {
    let mut message = Message {
        bytes: [0; MOST],
        length: 0,
    };
    // What is cut is missed less than the driver would be.
    let _cut = write!(message, "etw_sample_driver: {error}\n\0");
    if let Some(last) = message.bytes.last_mut() {
        *last = 0;
    }
    let Ok(text) = CStr::from_bytes_until_nul(&message.bytes) else {
        return;
    };
    // SAFETY: the format takes one text that a NUL ends.
    unsafe { DbgPrint(c"%s".as_ptr(), text.as_ptr()) };
}
