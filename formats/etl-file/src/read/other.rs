//! Records that are not decoded, and the sizes of all kinds of records.

use std::fmt;

use etw_wire::Guid;

use super::event::PointerSize;
use crate::cursor::Cursor;
use crate::layout;

/// A record that is not an event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The kind of record.
    pub kind: OtherKind,
    /// Offset in the file.
    pub offset: u64,
    /// Size in bytes, including the header but not the padding.
    pub size: u16,
    /// Number of the buffer, in the order of the file.
    pub buffer: u32,
    /// The processor that the buffer belongs to.
    pub processor: u16,
    /// Reading of the session's clock, if the record has one.
    pub timestamp: Option<i64>,
}

/// Kinds of records that are recognised but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OtherKind {
    /// Kernel event with a 32-byte header.
    System {
        /// Group and type of the event.
        hook: u16,
    },
    /// Kernel event with a 24-byte header.
    CompactSystem {
        /// Group and type of the event.
        hook: u16,
    },
    /// Kernel event with a 16-byte header.
    PerfInfo {
        /// Group and type of the event.
        hook: u16,
    },
    /// Classic event (`EVENT_TRACE_HEADER`).
    Classic {
        /// GUID of the event's class.
        class: Guid,
    },
    /// Classic event with an instance (`EVENT_INSTANCE_HEADER`).
    ClassicInstance,
    /// WPP message.
    Wpp,
    /// A trace header of an undocumented type.
    Unknown {
        /// The header type.
        header_type: u8,
    },
}

impl OtherKind {
    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::System { .. } => "system",
            Self::CompactSystem { .. } => "compact system",
            Self::PerfInfo { .. } => "perfinfo",
            Self::Classic { .. } => "classic",
            Self::ClassicInstance => "classic instance",
            Self::Wpp => "WPP",
            Self::Unknown { .. } => "unknown",
        }
    }
}

impl fmt::Display for OtherKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::System { hook } | Self::CompactSystem { hook } | Self::PerfInfo { hook } => {
                write!(f, " {hook:#06x}")
            }
            Self::Classic { class } => write!(f, " {class}"),
            Self::Unknown { header_type } => write!(f, " {header_type:#04x}"),
            Self::ClassicInstance | Self::Wpp => Ok(()),
        }
    }
}

/// The form of a record, determined by its first dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Event32,
    Event64,
    System,
    CompactSystem,
    PerfInfo,
    Classic,
    ClassicInstance,
    Wpp,
    Unknown(u8),
}

impl Form {
    /// Recognises a record by its first four bytes (ETL-3.1).
    pub(super) const fn of(first: [u8; 4]) -> Option<Self> {
        let [_, _, header_type, marker] = first;
        match (marker, header_type) {
            (layout::MARKER, 0x01 | 0x02) => Some(Self::System),
            (layout::MARKER, 0x03 | 0x04) => Some(Self::CompactSystem),
            (layout::MARKER, 0x0A | 0x14) => Some(Self::Classic),
            (layout::MARKER, 0x0B | 0x15) => Some(Self::ClassicInstance),
            (layout::MARKER, 0x10 | 0x11) => Some(Self::PerfInfo),
            (layout::MARKER, layout::HEADER_EVENT32) => Some(Self::Event32),
            (layout::MARKER, layout::HEADER_EVENT64) => Some(Self::Event64),
            (layout::MARKER, other) => Some(Self::Unknown(other)),
            (layout::MARKER_MESSAGE, _) => Some(Self::Wpp),
            _ => None,
        }
    }

    /// Returns true for an event record (`EVENT_HEADER`).
    pub(super) const fn is_event(self) -> bool {
        matches!(self, Self::Event32 | Self::Event64)
    }

    /// Returns the size of the pointers in a record, as its header type or its flags give it; if they
    /// do not, that of the trace.
    pub(super) fn pointer_size(self, record: &[u8], of_trace: PointerSize) -> PointerSize {
        let header_type = record.get(2).copied().unwrap_or_default();
        match self {
            Self::Event32 => PointerSize::Four,
            // The low byte of the flags of a WPP message.
            Self::Wpp => match record.get(6).copied().unwrap_or_default() {
                flags if flags & layout::WPP_POINTER32 != 0 => PointerSize::Four,
                flags if flags & layout::WPP_POINTER64 != 0 => PointerSize::Eight,
                _ => of_trace,
            },
            Self::Unknown(_) => of_trace,
            Self::System | Self::CompactSystem | Self::PerfInfo
                if matches!(header_type, 0x01 | 0x03 | 0x10) =>
            {
                PointerSize::Four
            }
            Self::Classic | Self::ClassicInstance if matches!(header_type, 0x0A | 0x0B) => {
                PointerSize::Four
            }
            _ => PointerSize::Eight,
        }
    }

    /// Returns the record's time stamp, if its form has one.
    pub(super) fn timestamp(self, record: &[u8]) -> Option<i64> {
        let offset = match self {
            Self::Event32
            | Self::Event64
            | Self::System
            | Self::CompactSystem
            | Self::Classic
            | Self::ClassicInstance => 16,
            Self::PerfInfo => 8,
            Self::Wpp => layout::timestamp_offset(record)?,
            Self::Unknown(_) => return None,
        };
        let bytes = record.get(offset..)?.first_chunk()?;
        Some(i64::from_le_bytes(*bytes))
    }

    /// Returns the size of the record's header, which is the minimum size of the record.
    pub(super) const fn header_size(self) -> usize {
        match self {
            Self::Event32 | Self::Event64 => layout::EVENT_HEADER,
            Self::System => layout::SYSTEM_HEADER,
            Self::CompactSystem => 24,
            Self::PerfInfo => 16,
            Self::Classic | Self::ClassicInstance => 48,
            Self::Wpp | Self::Unknown(_) => 8,
        }
    }

    /// Returns the record's size field. Kernel records have it in the second dword, all others in
    /// the first.
    pub(super) fn record_size(self, bytes: &[u8]) -> Option<u16> {
        let mut c = Cursor::new(bytes);
        if matches!(self, Self::System | Self::CompactSystem | Self::PerfInfo) {
            c.take(4)?;
        }
        c.u16()
    }

    /// Returns the kind and the time stamp of a record of this form, or `None` for an event record
    /// and if `record` is shorter than its header.
    pub(super) fn describe(self, record: &[u8]) -> Option<(OtherKind, Option<i64>)> {
        let at = |offset| {
            let mut c = Cursor::new(record);
            c.take(offset)?;
            Some(c)
        };
        let hook = || at(6)?.u16();
        let timestamp = || self.timestamp(record);
        Some(match self {
            Self::Event32 | Self::Event64 => return None,
            Self::System => (OtherKind::System { hook: hook()? }, timestamp()),
            Self::CompactSystem => (OtherKind::CompactSystem { hook: hook()? }, timestamp()),
            Self::PerfInfo => (OtherKind::PerfInfo { hook: hook()? }, timestamp()),
            Self::Classic => {
                let class = Guid::from_bytes(at(24)?.array()?);
                (OtherKind::Classic { class }, timestamp())
            }
            Self::ClassicInstance => (OtherKind::ClassicInstance, timestamp()),
            Self::Wpp => (OtherKind::Wpp, timestamp()),
            Self::Unknown(header_type) => (OtherKind::Unknown { header_type }, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_record_states_its_pointer_size() {
        let size = |header_type, of_trace| {
            let record = [0, 0, header_type, layout::MARKER];
            Form::of(record).unwrap().pointer_size(&record, of_trace)
        };
        for of_trace in [PointerSize::Four, PointerSize::Eight] {
            for narrow in [0x01, 0x03, 0x0A, 0x0B, 0x10, 0x12] {
                assert_eq!(size(narrow, of_trace), PointerSize::Four, "{narrow:#x}");
            }
            for wide in [0x02, 0x04, 0x11, 0x13, 0x14, 0x15] {
                assert_eq!(size(wide, of_trace), PointerSize::Eight, "{wide:#x}");
            }
            assert_eq!(size(0x77, of_trace), of_trace);
        }
    }
}
