//! Records, borrowed from the buffer that contains them.

use super::event::{self, EventRef, Place, PointerSize};
use super::other::{self, Other, OtherKind};
use crate::layout::Form;
use crate::time::{Clock, FileTime};

/// A record of any form, borrowed from the buffer that contains it.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// The whole record: header and payload, without padding.
    pub bytes: &'a [u8],
    /// The processor that the buffer belongs to.
    pub processor: u16,
    /// The number of the buffer, in file order.
    pub buffer: u32,
    /// The offset of the record: its buffer's offset in the file plus its offset in the
    /// uncompressed buffer.
    pub offset: u64,
    /// The clock reading that the record is sorted by: its own or, if it has none, the previous
    /// record's.
    pub timestamp: i64,
    pub(super) clock: &'a Clock,
    pub(super) form: Form,
    /// The pointer size of the machine that recorded the trace.
    pub(super) of_trace: PointerSize,
    /// The offset of the user data in an event record.
    pub(super) user_data: usize,
}

impl<'a> RecordRef<'a> {
    /// Returns the record with other bytes of the same form and size.
    pub(crate) const fn with_bytes<'b>(&self, bytes: &'b [u8]) -> RecordRef<'b>
    where
        'a: 'b,
    {
        RecordRef { bytes, ..*self }
    }

    /// Returns the absolute time of [`timestamp`](Self::timestamp).
    #[must_use]
    pub fn time(&self) -> FileTime {
        self.clock.to_file_time(self.timestamp)
    }

    /// Returns the clock of the trace.
    #[must_use]
    pub const fn clock(&self) -> &'a Clock {
        self.clock
    }

    /// Returns the pointer size of the machine or process that wrote the record, as the record's
    /// header type or flags imply it. If they imply none, returns the pointer size of the machine
    /// that recorded the trace.
    #[must_use]
    pub fn pointer_size(&self) -> PointerSize {
        other::pointer_size(self.form, self.bytes, self.of_trace)
    }

    /// Returns the kind of the record, or `None` if it is an event record.
    #[must_use]
    pub fn kind(&self) -> Option<OtherKind> {
        let (kind, _) = other::describe(self.form, self.bytes)?;
        Some(kind)
    }

    /// Returns the event, if the record is an event record.
    #[must_use]
    pub fn event(&self) -> Option<EventRef<'a>> {
        let event = self.event_without_time()?;
        Some(EventRef { time: self.time(), ..event })
    }

    /// Returns the event with the time 0, if the record is an event record.
    pub(crate) fn event_without_time(&self) -> Option<EventRef<'a>> {
        if !self.form.is_event() {
            return None;
        }
        let place = Place {
            time: FileTime::default(),
            processor: self.processor,
            buffer: self.buffer,
            offset: self.offset,
            pointer_size: self.pointer_size(),
        };
        event::view(self.bytes, self.user_data, place)
    }

    /// Returns the description of a record that is not an event record.
    #[must_use]
    pub fn other(&self) -> Option<Other> {
        let (kind, timestamp) = other::describe(self.form, self.bytes)?;
        Some(Other {
            kind,
            offset: self.offset,
            size: u16::try_from(self.bytes.len()).unwrap_or(u16::MAX),
            buffer: self.buffer,
            processor: self.processor,
            timestamp,
        })
    }
}

/// The parts of a [`RecordRef`] besides its bytes and clock.
#[derive(Clone, Copy, Debug)]
struct Properties {
    processor: u16,
    buffer: u32,
    offset: u64,
    timestamp: i64,
    form: Form,
    of_trace: PointerSize,
    user_data: usize,
}

impl Properties {
    const fn from_record(record: &RecordRef<'_>) -> Self {
        Self {
            processor: record.processor,
            buffer: record.buffer,
            offset: record.offset,
            timestamp: record.timestamp,
            form: record.form,
            of_trace: record.of_trace,
            user_data: record.user_data,
        }
    }

    const fn with<'a>(&self, bytes: &'a [u8], clock: &'a Clock) -> RecordRef<'a> {
        RecordRef {
            bytes,
            processor: self.processor,
            buffer: self.buffer,
            offset: self.offset,
            timestamp: self.timestamp,
            clock,
            form: self.form,
            of_trace: self.of_trace,
            user_data: self.user_data,
        }
    }
}

/// A record of any form with owned bytes, so that it can outlive its buffer.
#[derive(Clone, Debug)]
pub struct RecordBuf {
    bytes: Box<[u8]>,
    clock: Clock,
    properties: Properties,
}

impl RecordBuf {
    /// Returns the record.
    #[must_use]
    pub const fn get(&self) -> RecordRef<'_> {
        self.properties.with(&self.bytes, &self.clock)
    }

    /// Returns the memory size of the record in bytes.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + self.bytes.len()
    }
}

impl From<&RecordRef<'_>> for RecordBuf {
    fn from(record: &RecordRef<'_>) -> Self {
        Self {
            bytes: record.bytes.into(),
            clock: *record.clock,
            properties: Properties::from_record(record),
        }
    }
}

/// Consecutive records of a trace, with owned bytes.
#[derive(Debug)]
pub struct RecordBatch {
    clock: Clock,
    bytes: Vec<u8>,
    /// The records and the ends of their bytes.
    records: Vec<(Properties, usize)>,
}

impl RecordBatch {
    /// The number of bytes at which a batch is full.
    pub const FULL: usize = 128 << 10;

    /// Returns a batch for records of a trace with this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, bytes: Vec::with_capacity(Self::FULL), records: Vec::new() }
    }

    /// Adds a record. Returns true if the batch is then full.
    pub fn push(&mut self, record: &RecordRef<'_>) -> bool {
        self.bytes.extend_from_slice(record.bytes);
        self.records.push((Properties::from_record(record), self.bytes.len()));
        self.bytes.len() >= Self::FULL
    }

    /// Returns the records.
    pub fn iter(&self) -> impl Iterator<Item = RecordRef<'_>> {
        let mut start = 0;
        self.records.iter().filter_map(move |(properties, end)| {
            let bytes = self.bytes.get(start..*end)?;
            start = *end;
            Some(properties.with(bytes, &self.clock))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::LogFileHeader;

    #[test]
    fn a_record_takes_memory_for_its_bytes_besides_its_own() {
        let of = |length| {
            let record = RecordBuf {
                bytes: vec![0; length].into(),
                clock: LogFileHeader::default().session_clock(),
                properties: Properties {
                    processor: 0,
                    buffer: 1,
                    offset: 0,
                    timestamp: 0,
                    form: Form::Event64,
                    of_trace: PointerSize::Eight,
                    user_data: 0,
                },
            };
            record.size()
        };
        assert_eq!(of(0), size_of::<RecordBuf>());
        assert_eq!(of(1000), size_of::<RecordBuf>() + 1000);
    }
}
