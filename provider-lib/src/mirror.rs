//! The lines that a provider with `debugger` prints in the debugger, one for each of its events.
//!
//! Only code of debug builds calls these functions.

use core::{
    ffi::CStr,
    fmt,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
};

use crate::{
    Bool32, F32, F64, FileTime, Guid, HResult, HexDump, Level, Luid, NtStatus, Pointer, Port,
    ProcessId, Provider, Sid, SystemTime, ThreadId, UnicodeString, Utf16CStr, Win32Error, debugger,
    event::EventRef, ffi, irql, provider::StaticProvider, write::Options,
};

/// The maximum numbers of a value's characters, bytes and elements that a line shows.
const MAX_CHARACTERS: usize = 128;
const MAX_BYTES: usize = 32;
const MAX_ELEMENTS: usize = 16;

/// A line that is being printed.
pub struct Line<'a> {
    to: &'a mut dyn fmt::Write,
    separator: &'static str,
}

impl Line<'_> {
    /// Adds a field. `is_hex` is true for a number in hexadecimal and for a pointer's address.
    pub fn field(&mut self, name: &str, value: &dyn Print, is_hex: bool) {
        // An error says that the line is full.
        let head = write!(self.to, "{}{name}=", self.separator);
        let _full = head.and_then(|()| value.print(self.to, is_hex));
        self.separator = " ";
    }
}

/// A value that a line can show as text.
pub trait Print {
    /// Writes the value.
    ///
    /// # Errors
    ///
    /// Returns an error if the line is full.
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result;
}

#[doc(hidden)]
impl<const N: usize> StaticProvider<N> {
    /// Makes the provider print its events in the debugger.
    #[must_use]
    pub const fn with_debugger(mut self, prints: bool) -> Self {
        self.prints = prints;
        self
    }
}

impl Provider {
    /// Returns whether the provider prints its events in the debugger.
    #[doc(hidden)]
    #[must_use]
    pub const fn prints(&self) -> bool {
        self.prints
    }

    /// Prints an event in the debugger if the provider prints its events. Returns whether the event
    /// must also be written: a session enables it, or it was not printed.
    #[doc(hidden)]
    #[must_use]
    pub fn mirror<const HAS_METADATA: bool, O: Options>(
        &self,
        event: EventRef<HAS_METADATA>,
        options: &O,
        name: &str,
        fields: &dyn Fn(&mut Line<'_>),
    ) -> bool {
        if !self.prints {
            return true;
        }
        let own = event.descriptor();
        let of_write = options.descriptor(own);
        let event = of_write.as_ref().unwrap_or(own);
        if irql::check(ffi::MAX_DIRQL).is_ok() {
            let provider = self.traits().name();
            debugger::print_event(severity(event.level()), |to| {
                write!(to, "{provider} {name}")?;
                fields(&mut Line { to, separator: " " });
                Ok(())
            });
        }
        self.is_enabled_fast(event.level(), event.keyword())
    }
}

/// Returns the level of a message (`DPFLTR_*_LEVEL`) for an event's level.
const fn severity(level: Level) -> u32 {
    match level {
        Level::CRITICAL | Level::ERROR => ffi::DPFLTR_ERROR_LEVEL,
        Level::WARNING => ffi::DPFLTR_WARNING_LEVEL,
        Level::LOG_ALWAYS | Level::INFO => ffi::DPFLTR_INFO_LEVEL,
        _ => ffi::DPFLTR_TRACE_LEVEL,
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Print for $type {
            fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
                if is_hex { write!(to, "{self:#x}") } else { write!(to, "{self}") }
            }
        }
    )*};
}

integers!(i8, u8, i16, u16, i32, u32, i64, u64, isize, usize);

macro_rules! values {
    ($($type:ty: $value:ident => $($format:expr),+;)*) => {$(
        impl Print for $type {
            fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
                let $value = self;
                write!(to, $($format),+)
            }
        }
    )*};
}

values! {
    bool: v => "{v}";
    Bool32: v => "{}", v.0 != 0;
    // Kernel code must not use floating-point registers, so a line shows the bits.
    F32: v => "{:#010x}", v.to_bits();
    F64: v => "{:#018x}", v.to_bits();
    Guid: v => "{{{v}}}";
    FileTime: v => "{}", v.0;
    Luid: v => "{:#x}", u64::from(v.high_part.cast_unsigned()) << 32 | u64::from(v.low_part);
    SystemTime: v => "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}",
        v.year, v.month, v.day, v.hour, v.minute, v.second, v.millisecond;
    NtStatus: v => "{v}";
    HResult: v => "0x{:08X}", v.0;
    Win32Error: v => "{}", v.0;
    ProcessId: v => "{}", v.0;
    ThreadId: v => "{}", v.0;
    Port: v => "{}", v.0;
    Ipv4Addr: v => "{v}";
    Ipv6Addr: v => "{v}";
    SocketAddr: v => "{v}";
}

impl Print for Pointer {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        if is_hex { write!(to, "{:#x}", self.address()) } else { write!(to, "{self:?}") }
    }
}

impl Print for Sid<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let Some(([revision, _count, authority @ ..], subauthorities)) =
            self.as_bytes().split_first_chunk::<8>()
        else {
            return Ok(());
        };
        let authority = authority.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        write!(to, "S-{revision}-{authority}")?;
        subauthorities
            .as_chunks::<4>()
            .0
            .iter()
            .try_for_each(|subauthority| write!(to, "-{}", u32::from_le_bytes(*subauthority)))
    }
}

impl<T: Print + ?Sized> Print for &T {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        T::print(self, to, is_hex)
    }
}

impl<T: Print> Print for [T] {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        list(to, self, MAX_ELEMENTS, ", ", |to, value| value.print(to, is_hex))
    }
}

impl<T: Print, const N: usize> Print for [T; N] {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        self.as_slice().print(to, is_hex)
    }
}

/// Bytes that are not an array of numbers.
pub struct Bytes<'a>(pub &'a [u8]);

impl Print for Bytes<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        list(to, self.0, MAX_BYTES, " ", |to, byte| write!(to, "{byte:02x}"))
    }
}

impl Print for HexDump<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        structure(to, |line| {
            line.field("Offset", &self.offset, true);
            line.field("Size", &self.size, false);
            line.field("Bytes", &Bytes(self.bytes), false);
        })
    }
}

/// Writes the first values of a list and, if there are more, their number.
fn list<T>(
    to: &mut dyn fmt::Write,
    values: &[T],
    most: usize,
    separator: &str,
    value: impl Fn(&mut dyn fmt::Write, &T) -> fmt::Result,
) -> fmt::Result {
    to.write_char('[')?;
    for (at, one) in values.iter().take(most).enumerate() {
        to.write_str(if at == 0 { "" } else { separator })?;
        value(to, one)?;
    }
    if values.len() > most {
        write!(to, "{separator}... of {}", values.len())?;
    }
    to.write_char(']')
}

/// Writes the members of a structure.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn structure(to: &mut dyn fmt::Write, members: impl Fn(&mut Line<'_>)) -> fmt::Result {
    to.write_char('{')?;
    members(&mut Line { to, separator: "" });
    to.write_char('}')
}

/// Writes the name of a map's value, or its number if it has no name.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn map(to: &mut dyn fmt::Write, value: u32, entries: &[(u32, &str)]) -> fmt::Result {
    match entries.iter().find(|(of, _)| *of == value) {
        Some((_, name)) => to.write_str(name),
        None => write!(to, "{value}"),
    }
}

/// Writes the names of a bit map's bits, and the bits without a name in hexadecimal.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn bits(to: &mut dyn fmt::Write, value: u32, entries: &[(u32, &str)]) -> fmt::Result {
    let (mut rest, mut separator) = (value, "");
    for (mask, name) in entries {
        if *mask != 0 && value & mask == *mask {
            write!(to, "{separator}{name}")?;
            (rest, separator) = (rest & !mask, "|");
        }
    }
    if rest != 0 || separator.is_empty() { write!(to, "{separator}{rest:#x}") } else { Ok(()) }
}

/// Text between quotation marks. Control characters are escaped, so that an event takes one line.
struct Quoted<'a> {
    to: &'a mut dyn fmt::Write,
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
                one.escape_default().try_for_each(|one| self.to.write_char(one))
            } else {
                self.to.write_char(one)
            }
        })
    }
}

/// Writes text between quotation marks.
fn quoted(
    to: &mut dyn fmt::Write,
    text: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
) -> fmt::Result {
    to.write_char('"')?;
    let mut inside = Quoted { to, left: MAX_CHARACTERS, is_cut: false };
    // An error that a value's own formatting returns ends the text.
    let _ended = text(&mut inside);
    let end = if inside.is_cut { "\"..." } else { "\"" };
    to.write_str(end)
}

impl Print for str {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        quoted(to, |to| to.write_str(self))
    }
}

impl Print for fmt::Arguments<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        quoted(to, |to| to.write_fmt(*self))
    }
}

/// Text of one byte per code unit, up to its first NUL.
pub struct Narrow<'a>(pub &'a [u8]);

impl Print for Narrow<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let bytes = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        quoted(to, |to| {
            bytes.utf8_chunks().try_for_each(|chunk| {
                let after = if chunk.invalid().is_empty() { "" } else { "\u{FFFD}" };
                to.write_str(chunk.valid()).and_then(|()| to.write_str(after))
            })
        })
    }
}

impl Print for CStr {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        Narrow(self.to_bytes()).print(to, is_hex)
    }
}

impl Print for UnicodeString<'_> {
    fn print(&self, to: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        let characters = char::decode_utf16(self.units().iter().copied());
        quoted(to, |to| {
            characters
                .map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER))
                .try_for_each(|one| to.write_char(one))
        })
    }
}

impl Print for Utf16CStr<'_> {
    fn print(&self, to: &mut dyn fmt::Write, is_hex: bool) -> fmt::Result {
        UnicodeString::new(self.units()).print(to, is_hex)
    }
}
