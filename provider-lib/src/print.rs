//! Values as text in the debugger.

use core::{
    ffi::CStr,
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use etw_wire::{Guid, NtStatus};

/// The maximum numbers of a value's characters, bytes and elements that a line shows.
const MAX_CHARACTERS: usize = 128;
const MAX_BYTES: usize = 32;
const MAX_ELEMENTS: usize = 16;

/// A value that a line can show as text.
pub trait Print {
    /// Writes the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the line is full.
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result;
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Print for $type {
            fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
                if is_hex { write!(writer, "{self:#x}") } else { write!(writer, "{self}") }
            }
        }
    )*};
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);

/// Implements [`Print`]: `Type: value => format, arguments;`.
macro_rules! values {
    ($($type:ty: $value:ident => $($format:expr),+;)*) => {$(
        impl $crate::print::Print for $type {
            fn print(&self, writer: &mut dyn ::core::fmt::Write, _is_hex: bool) -> ::core::fmt::Result {
                let $value = self;
                ::core::write!(writer, $($format),+)
            }
        }
    )*};
}

pub(crate) use values;

values! {
    bool: v => "{v}";
    Guid: v => "{{{v}}}";
    NtStatus: v => "{v}";
    Ipv4Addr: v => "{v}";
    Ipv6Addr: v => "{v}";
    SocketAddr: v => "{v}";
}

impl<T: Print + ?Sized> Print for &T {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        T::print(self, writer, is_hex)
    }
}

impl<T: Print> Print for [T] {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        list(writer, self, MAX_ELEMENTS, ", ", |writer, value| value.print(writer, is_hex))
    }
}

impl<T: Print, const N: usize> Print for [T; N] {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        self.as_slice().print(writer, is_hex)
    }
}

/// Bytes that are not an array of numbers.
pub struct Bytes<'a>(pub &'a [u8]);

impl Print for Bytes<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        list(writer, self.0, MAX_BYTES, " ", |writer, byte| write!(writer, "{byte:02x}"))
    }
}

/// Writes the first values of a list and, if there are more, their number.
fn list<T>(
    writer: &mut dyn fmt::Write,
    values: &[T],
    most: usize,
    separator: &str,
    value: impl Fn(&mut dyn fmt::Write, &T) -> fmt::Result,
) -> fmt::Result {
    writer.write_char('[')?;
    for (at, one) in values.iter().take(most).enumerate() {
        writer.write_str(if at == 0 { "" } else { separator })?;
        value(writer, one)?;
    }
    if values.len() > most {
        write!(writer, "{separator}... of {}", values.len())?;
    }
    writer.write_char(']')
}

/// Text between quotation marks. Control characters are escaped, so that an event takes one line.
struct Quoted<'a> {
    writer: &'a mut dyn fmt::Write,
    /// The number of characters that may follow.
    left: usize,
    is_cut: bool,
}

impl fmt::Write for Quoted<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|one| {
            let Some(left) = self.left.checked_sub(1) else {
                self.is_cut = true;
                return Err(fmt::Error);
            };
            self.left = left;
            if one.is_control() || matches!(one, '"' | '\\') {
                one.escape_default().try_for_each(|one| self.writer.write_char(one))
            } else {
                self.writer.write_char(one)
            }
        })
    }
}

/// Writes text between quotation marks.
pub fn quoted(
    writer: &mut dyn fmt::Write,
    text: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
) -> fmt::Result {
    writer.write_char('"')?;
    let mut inside = Quoted { writer, left: MAX_CHARACTERS, is_cut: false };
    // An error that a value's own formatting returns ends the text.
    let _ended = text(&mut inside);
    let end = if inside.is_cut { "\"..." } else { "\"" };
    writer.write_str(end)
}

impl Print for str {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        quoted(writer, |writer| writer.write_str(self))
    }
}

impl Print for fmt::Arguments<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        quoted(writer, |writer| writer.write_fmt(*self))
    }
}

/// Text of one byte per code unit, up to its first NUL.
pub struct Narrow<'a>(pub &'a [u8]);

impl Print for Narrow<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let bytes = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        quoted(writer, |writer| {
            bytes.utf8_chunks().try_for_each(|chunk| {
                let after = if chunk.invalid().is_empty() { "" } else { "\u{FFFD}" };
                writer.write_str(chunk.valid()).and_then(|()| writer.write_str(after))
            })
        })
    }
}

impl Print for CStr {
    fn print(&self, writer: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        Narrow(self.to_bytes()).print(writer, is_hex)
    }
}
