//! The lines that a provider with `debugger` prints in the debugger, one for each of its events.
//!
//! Only code of debug builds calls these functions.

use core::fmt;

use crate::{
    HexDump, Level, Provider, debugger,
    event::EventRef,
    ffi, irql,
    print::{Bytes, Print},
    provider::StaticProvider,
    write::Options,
};

/// A line that is being printed.
pub struct Line<'a> {
    writer: &'a mut dyn fmt::Write,
    separator: &'static str,
}

impl Line<'_> {
    /// Adds a field. `is_hex` is true for a number in hexadecimal and for a pointer's address.
    pub fn field(&mut self, name: &str, value: &dyn Print, is_hex: bool) {
        // An error says that the line is full.
        let head = write!(self.writer, "{}{name}=", self.separator);
        let _full = head.and_then(|()| value.print(self.writer, is_hex));
        self.separator = " ";
    }
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
            debugger::print_event(severity(event.level()), |writer| {
                write!(writer, "{provider} {name}")?;
                fields(&mut Line { writer, separator: " " });
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

impl Print for HexDump<'_> {
    fn print(&self, writer: &mut dyn fmt::Write, _is_hex: bool) -> fmt::Result {
        structure(writer, |line| {
            line.field("Offset", &self.offset, true);
            line.field("Size", &self.size, false);
            line.field("Bytes", &Bytes(self.bytes), false);
        })
    }
}

/// Writes the members of a structure.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn structure(writer: &mut dyn fmt::Write, members: impl Fn(&mut Line<'_>)) -> fmt::Result {
    writer.write_char('{')?;
    members(&mut Line { writer, separator: "" });
    writer.write_char('}')
}

/// Writes the name of a map's value, or its number if it has no name.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn map(writer: &mut dyn fmt::Write, value: u32, entries: &[(u32, &str)]) -> fmt::Result {
    match entries.iter().find(|(of, _)| *of == value) {
        Some((_, name)) => writer.write_str(name),
        None => write!(writer, "{value}"),
    }
}

/// Writes the names of a bit map's bits, and the bits without a name in hexadecimal.
///
/// # Errors
///
/// Returns an error if the line is full.
pub fn bits(writer: &mut dyn fmt::Write, value: u32, entries: &[(u32, &str)]) -> fmt::Result {
    let (mut rest, mut separator) = (value, "");
    for (mask, name) in entries {
        if *mask != 0 && value & mask == *mask {
            write!(writer, "{separator}{name}")?;
            (rest, separator) = (rest & !mask, "|");
        }
    }
    if rest != 0 || separator.is_empty() { write!(writer, "{separator}{rest:#x}") } else { Ok(()) }
}
