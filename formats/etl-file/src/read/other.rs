//! Records that are not decoded.

use std::fmt;

use etw_wire::Guid;

use super::event::PointerSize;
use crate::layout::{Form, wpp_flags};

/// A record that is not an event record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The kind of record.
    pub kind: OtherKind,
    /// The offset in the file.
    pub offset: u64,
    /// The size in bytes, including the header but not the padding.
    pub size: u16,
    /// The number of the buffer, in file order.
    pub buffer: u32,
    /// The processor that the buffer belongs to.
    pub processor: u16,
    /// The reading of the session's clock, if the record has one.
    pub timestamp: Option<i64>,
}

/// The kinds of records that are recognized but not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OtherKind {
    /// A kernel event with a 32-byte header.
    System {
        /// The event's group and type.
        hook: u16,
    },
    /// A kernel event with a 24-byte header.
    CompactSystem {
        /// The event's group and type.
        hook: u16,
    },
    /// A kernel event with a 16-byte header.
    PerfInfo {
        /// The event's group and type.
        hook: u16,
    },
    /// A classic event (`EVENT_TRACE_HEADER`).
    Classic {
        /// The GUID of the event's class.
        class: Guid,
    },
    /// A classic event that belongs to an instance (`EVENT_INSTANCE_HEADER`).
    ClassicInstance,
    /// A WPP message.
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

/// Returns the pointer size that a record's header type or flags imply or, if they imply none, the
/// trace's pointer size.
pub fn pointer_size(form: Form, record: &[u8], of_trace: PointerSize) -> PointerSize {
    let byte = |at| record.get(at).copied().unwrap_or_default();
    match form {
        Form::Event32 => PointerSize::Four,
        Form::Wpp => match u16::from_le_bytes([byte(6), byte(7)]) {
            flags if flags & wpp_flags::POINTER32 != 0 => PointerSize::Four,
            flags if flags & wpp_flags::POINTER64 != 0 => PointerSize::Eight,
            _ => of_trace,
        },
        Form::Unknown(_) => of_trace,
        // The header types of classic and kernel records.
        _ if matches!(byte(2), 0x01 | 0x03 | 0x0A | 0x0B | 0x10) => PointerSize::Four,
        _ => PointerSize::Eight,
    }
}

/// Returns the kind and timestamp of a record, or `None` if it is an event record or shorter than
/// its header.
pub(super) fn describe(form: Form, record: &[u8]) -> Option<(OtherKind, Option<i64>)> {
    let hook = || form.hook(record);
    let kind = match form {
        Form::Event32 | Form::Event64 => return None,
        Form::System => OtherKind::System { hook: hook()? },
        Form::CompactSystem => OtherKind::CompactSystem { hook: hook()? },
        Form::PerfInfo => OtherKind::PerfInfo { hook: hook()? },
        Form::Classic => {
            let class = Guid::from_bytes(*record.get(24..)?.first_chunk()?);
            OtherKind::Classic { class }
        }
        Form::ClassicInstance => OtherKind::ClassicInstance,
        Form::Wpp => OtherKind::Wpp,
        Form::Unknown(header_type) => OtherKind::Unknown { header_type },
    };
    Some((kind, form.timestamp(record)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::MARKER;

    #[test]
    fn the_type_of_a_record_states_its_pointer_size() {
        let size = |header_type, of_trace| {
            let record = [0, 0, header_type, MARKER];
            pointer_size(Form::recognize(&record).unwrap(), &record, of_trace)
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
