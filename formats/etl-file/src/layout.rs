//! Sizes, offsets and bits of the file format (see `docs/reference/etl-format.md`).

/// The size of a buffer header (`WMI_BUFFER_HEADER`, ETL-1.2).
pub const BUFFER_HEADER: usize = 72;
/// The size of an event record's header (`EVENT_HEADER`, ETL-5.1).
pub const EVENT_HEADER: usize = 80;
/// The size of a classic event's header (`EVENT_TRACE_HEADER`).
pub const CLASSIC_HEADER: usize = 48;
/// The size of an extended data item's header on disk (ETL-5.12).
pub const ITEM_HEADER: usize = 8;
/// The size of a system event's header (`SYSTEM_TRACE_HEADER`, ETL-4.1).
pub const SYSTEM_HEADER: usize = 32;
/// The size of a compact system event's header (ETL-14.1).
pub const COMPACT_HEADER: usize = 24;
/// The size of a performance event's header (ETL-14.1).
pub const PERFINFO_HEADER: usize = 16;
/// The offset of the timestamp in event records, system events and classic events.
pub const EVENT_TIMESTAMP: usize = 16;
/// The size of `TRACE_LOGFILE_HEADER` in a 64-bit trace (ETL-4.1).
pub const LOGFILE_HEADER: usize = 0x118;
/// The maximum size of a record, whose size field is 16 bits wide (ETL-1.7).
pub const MAX_RECORD: usize = 0xFFFF;

/// `EVENT_HEADER.Flags`: extended items precede the user data (ETL-5.3).
pub const FLAG_EXTENDED_INFO: u16 = 0x01;
/// `EVENT_HEADER.Flags`: the user data is a NUL-terminated UTF-16 string (ETL-5.3).
pub const FLAG_STRING_ONLY: u16 = 0x04;

/// `BufferFlag`: the last buffer of a flush (ETL-2.14).
pub const FLAG_FLUSH_MARKER: u16 = 0x01;
/// `BufferFlag`: events were lost before this buffer (ETL-8.3).
pub const FLAG_EVENTS_LOST: u16 = 0x02;
/// `BufferFlag`: buffers were lost before this buffer (ETL-8.3).
pub const FLAG_BUFFER_LOST: u16 = 0x04;
/// `BufferFlag`: the processor index is 16 bits wide (ETL-2.8).
pub const FLAG_PROCESSOR_INDEX: u16 = 0x20;

/// `BufferFlag`: the records are compressed (ETL-2.14).
pub const FLAG_COMPRESSED: u16 = 0x40;
/// The sector size; plain buffers in a compressed file are padded to a multiple of it (ETL-12.3).
pub const SECTOR: usize = 512;
/// The offset of the number of used bytes in a buffer header (ETL-2.11).
pub const USED_OFFSET: usize = 0x30;

/// `BufferType` of an ordinary buffer.
pub const TYPE_GENERIC: u16 = 0;
/// `BufferType` of the first buffer (ETL-2.13).
pub const TYPE_HEADER: u16 = 4;

/// The `State` of every buffer on disk: flushed (ETL-2.10).
pub const STATE_FLUSH: u32 = 3;

/// The byte that fills a buffer after its used bytes (ETL-1.6).
pub const FILLER: u8 = 0xFF;

/// The upper byte of the first dword of a record with a trace header (ETL-3.1).
pub const MARKER: u8 = 0xC0;
/// The upper byte of the first dword of a WPP message.
pub const MARKER_MESSAGE: u8 = 0x90;
/// The header type of a system event with a 32-bit payload.
pub const HEADER_SYSTEM32: u8 = 0x01;
/// The header type of a system event with a 64-bit payload.
pub const HEADER_SYSTEM64: u8 = 0x02;
/// The header type of a compact system event with a 32-bit payload.
pub const HEADER_COMPACT32: u8 = 0x03;
/// The header type of a performance event with a 32-bit payload.
pub const HEADER_PERFINFO32: u8 = 0x10;
/// The header type of an event record with a 32-bit payload.
pub const HEADER_EVENT32: u8 = 0x12;
/// The header type of an event record with a 64-bit payload.
pub const HEADER_EVENT64: u8 = 0x13;

/// The flags of a WPP message, which select the parts of its header, in this order (ETL-14.3).
pub mod wpp_flags {
    /// A 32-bit sequence number.
    pub const SEQUENCE: u16 = 0x01;
    /// The message's GUID.
    pub const GUID: u16 = 0x02;
    /// A 32-bit component id instead of the GUID.
    pub const COMPONENT_ID: u16 = 0x04;
    /// The system time.
    pub const TIMESTAMP: u16 = 0x08;
    /// The performance counter instead of the system time.
    pub const PERFORMANCE_TIMESTAMP: u16 = 0x10;
    /// The thread id and the process id.
    pub const SYSTEM_INFO: u16 = 0x20;
    /// The arguments contain 32-bit pointers.
    pub const POINTER32: u16 = 0x40;
    /// The arguments contain 64-bit pointers.
    pub const POINTER64: u16 = 0x80;
}

/// The offsets, from the start of the file, of the fields that change while a
/// trace is recorded (ETL-8.4).
pub mod file_offset {
    /// `EndTime`, 8 bytes.
    pub const END_TIME: u64 = 0x78;
    /// `BuffersWritten`, 4 bytes.
    pub const BUFFERS_WRITTEN: u64 = 0x8C;
    /// `EventsLost`, 4 bytes.
    pub const EVENTS_LOST: u64 = 0x98;
    /// `BuffersLost`, 4 bytes.
    pub const BUFFERS_LOST: u64 = 0x17C;
    /// A buffer's `BufferFlag`, 2 bytes, from the start of the buffer.
    pub const BUFFER_FLAG: u64 = 0x34;
}

/// Rounds `size` up to the next multiple of 8, the alignment of records and extended items
/// (ETL-1.5, ETL-5.12).
pub const fn align8(size: usize) -> usize {
    size.next_multiple_of(8)
}

/// The form of a record, given by its first dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
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
    /// Recognizes a record by its first four bytes (ETL-3.1). Returns `None` if they are not the
    /// start of a record.
    pub fn recognize(record: &[u8]) -> Option<Self> {
        let &[_, _, header_type, marker] = record.first_chunk::<4>()?;
        match (marker, header_type) {
            (MARKER, 0x01 | 0x02) => Some(Self::System),
            (MARKER, 0x03 | 0x04) => Some(Self::CompactSystem),
            (MARKER, 0x0A | 0x14) => Some(Self::Classic),
            (MARKER, 0x0B | 0x15) => Some(Self::ClassicInstance),
            (MARKER, 0x10 | 0x11) => Some(Self::PerfInfo),
            (MARKER, HEADER_EVENT32) => Some(Self::Event32),
            (MARKER, HEADER_EVENT64) => Some(Self::Event64),
            (MARKER, other) => Some(Self::Unknown(other)),
            (MARKER_MESSAGE, _) => Some(Self::Wpp),
            _ => None,
        }
    }

    /// Returns true for an event record (`EVENT_HEADER`).
    pub const fn is_event(self) -> bool {
        matches!(self, Self::Event32 | Self::Event64)
    }

    const fn is_kernel(self) -> bool {
        matches!(self, Self::System | Self::CompactSystem | Self::PerfInfo)
    }

    /// Returns the size of the record's header, which is the record's minimum size.
    pub const fn header_size(self) -> usize {
        match self {
            Self::Event32 | Self::Event64 => EVENT_HEADER,
            Self::System => SYSTEM_HEADER,
            Self::CompactSystem => COMPACT_HEADER,
            Self::PerfInfo => PERFINFO_HEADER,
            Self::Classic | Self::ClassicInstance => CLASSIC_HEADER,
            Self::Wpp | Self::Unknown(_) => 8,
        }
    }

    /// Returns the record's size field, which is in the second dword of kernel records and in the
    /// first of all others.
    pub fn record_size(self, record: &[u8]) -> Option<u16> {
        let size = record.get(if self.is_kernel() { 4 } else { 0 }..)?.first_chunk()?;
        Some(u16::from_le_bytes(*size))
    }

    /// Returns the group and type of a kernel record.
    pub fn hook(self, record: &[u8]) -> Option<u16> {
        let hook = record.get(6..)?.first_chunk()?;
        self.is_kernel().then_some(u16::from_le_bytes(*hook))
    }

    /// Returns the offset of the record's timestamp, if records of this form have one.
    pub fn timestamp_offset(self, record: &[u8]) -> Option<usize> {
        match self {
            Self::Event32
            | Self::Event64
            | Self::System
            | Self::CompactSystem
            | Self::Classic
            | Self::ClassicInstance => Some(EVENT_TIMESTAMP),
            Self::PerfInfo => Some(8),
            Self::Wpp => {
                let flags = u16::from_le_bytes(*record.get(6..)?.first_chunk()?);
                // The sequence number, then a component id or GUID, then the time (ETL-14.3).
                let sequence = if flags & wpp_flags::SEQUENCE == 0 { 0 } else { 4 };
                let source = match flags & (wpp_flags::GUID | wpp_flags::COMPONENT_ID) {
                    0 => 0,
                    wpp_flags::GUID => 16,
                    _ => 4,
                };
                let time = wpp_flags::TIMESTAMP | wpp_flags::PERFORMANCE_TIMESTAMP;
                (flags & time != 0).then_some(8 + sequence + source)
            }
            Self::Unknown(_) => None,
        }
    }

    /// Returns the record's timestamp, if records of this form have one.
    pub fn timestamp(self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.timestamp_offset(record)?..)?.first_chunk()?;
        Some(i64::from_le_bytes(*bytes))
    }
}

/// Returns the size that a record's header states, or `None` if the bytes are not the start of a
/// record (ETL-3.1).
pub fn record_size(record: &[u8]) -> Option<usize> {
    Form::recognize(record)?.record_size(record).map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timestamp_offset(record: &[u8]) -> Option<usize> {
        Form::recognize(record)?.timestamp_offset(record)
    }

    #[test]
    fn a_message_has_its_time_behind_its_sequence_number_and_its_source() {
        let offset = |flags: u8| timestamp_offset(&[12, 0, 1, MARKER_MESSAGE, 0, 0, flags, 0]);
        // Only a timestamp: of the system clock or of the counter.
        assert_eq!([0x08, 0x10].map(offset), [Some(8); 2]);
        // After a sequence number, a GUID, both, a component id, and both.
        let behind = [0x09, 0x0A, 0x0B, 0x0C, 0x0D].map(offset);
        assert_eq!(behind, [12, 24, 28, 12, 16].map(Some));
        // Without a timestamp.
        assert_eq!([0x00, 0x01, 0x02, 0x07, 0x20].map(offset), [None; 5]);
    }

    #[test]
    fn other_records_have_their_time_in_the_header() {
        let offset = |header_type| timestamp_offset(&[0, 0, header_type, MARKER]);
        assert_eq!([0x10, 0x11].map(offset), [Some(8); 2]);
        let types = [0x01, 0x02, 0x03, 0x04, 0x0A, 0x0B, 0x12, 0x13, 0x14, 0x15];
        assert_eq!(types.map(offset), [Some(16); 10]);
        assert_eq!([0x00, 0x05, 0x16].map(offset), [None; 3]);
        assert_eq!(timestamp_offset(&[0, 0, 0x13, 0]), None);
        assert_eq!(timestamp_offset(&[0, 0, 0x13]), None);
    }
}
