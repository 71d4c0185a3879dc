//! A session's buffer in memory.

use crate::layout;
use crate::read::parse_event as parse;
use crate::record::{EncodeError, EventRecord};

/// A buffer of one processor, filled in memory and flushed to a log file as a
/// whole.
///
/// It holds encoded records, each padded to 8 bytes. Header and filler are
/// added when it is flushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    size: u32,
    processor: u16,
    records: Vec<u8>,
    count: u32,
    first_timestamp: Option<i64>,
    last_timestamp: Option<i64>,
}

/// A record was not appended; the buffer is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// No room is left: flush the buffer and try again.
    #[error("the buffer is full")]
    Full,
    /// Not even an empty buffer of this size has room for the record.
    #[error("the record takes {size} bytes with its padding, an empty buffer holds {capacity}")]
    NeverFits {
        /// Size of the record, padded to 8 bytes.
        size: usize,
        /// Room in an empty buffer.
        capacity: usize,
    },
    /// The event cannot be a record at all.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

impl Buffer {
    /// An empty buffer of `size` bytes on disk, header included, for the
    /// processor of this index.
    #[must_use]
    pub const fn new(size: u32, processor: u16) -> Self {
        Self {
            size,
            processor,
            records: Vec::new(),
            count: 0,
            first_timestamp: None,
            last_timestamp: None,
        }
    }

    /// The buffer, for the processor of this index.
    #[must_use]
    pub const fn on_processor(mut self, processor: u16) -> Self {
        self.processor = processor;
        self
    }

    /// Appends a record, or leaves the buffer as it is.
    ///
    /// Within a buffer, time stamps should not decrease: the caller appends in
    /// the order of its clock.
    ///
    /// # Errors
    /// [`AppendError::Full`] if the record fits in an empty buffer only,
    /// [`AppendError::NeverFits`] and [`AppendError::Encode`] if it fits in
    /// none.
    pub fn try_append(&mut self, record: &EventRecord) -> Result<(), AppendError> {
        self.check(record.encoded_size())?;
        record.encode_into(&mut self.records)?;
        self.records.resize(layout::align8(self.records.len()), 0);
        self.count += 1;
        self.first_timestamp.get_or_insert(record.timestamp);
        self.last_timestamp = Some(record.timestamp);
        Ok(())
    }

    /// Bytes on disk, header included.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// The processor that the buffer belongs to.
    #[must_use]
    pub const fn processor(&self) -> u16 {
        self.processor
    }

    /// Number of records.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Whether the buffer holds no record. Such a buffer is never flushed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes used, header included; a multiple of 8.
    #[must_use]
    pub const fn used(&self) -> usize {
        layout::BUFFER_HEADER + self.records.len()
    }

    /// Time stamp of the first record.
    #[must_use]
    pub const fn first_timestamp(&self) -> Option<i64> {
        self.first_timestamp
    }

    /// Time stamp of the last record.
    #[must_use]
    pub const fn last_timestamp(&self) -> Option<i64> {
        self.last_timestamp
    }

    /// The records as they will be on disk, each padded to 8 bytes.
    #[must_use]
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// The events, in the order they were appended.
    #[must_use]
    pub fn events(&self) -> Vec<EventRecord> {
        let mut events = Vec::new();
        let mut rest = self.records.as_slice();
        while let Some(size) = rest.first_chunk::<2>() {
            let size = usize::from(u16::from_le_bytes(*size));
            let Some(parsed) = rest.get(..size).and_then(parse) else {
                break; // not reached: only whole records are appended
            };
            events.push(parsed.record);
            rest = rest.get(layout::align8(size)..).unwrap_or_default();
        }
        events
    }

    /// Whether a record that takes `size` bytes fits now. See
    /// [`EventRecord::encoded_size`].
    ///
    /// # Errors
    /// As [`try_append`](Self::try_append).
    pub const fn check(&self, size: usize) -> Result<(), AppendError> {
        if size > layout::MAX_RECORD {
            return Err(AppendError::Encode(EncodeError::TooLarge { size }));
        }
        let size = layout::align8(size);
        let capacity = self.capacity();
        if size > capacity {
            return Err(AppendError::NeverFits { size, capacity });
        }
        if size > capacity - self.records.len() {
            return Err(AppendError::Full);
        }
        Ok(())
    }

    /// Forgets the records and keeps the memory.
    pub fn reset(&mut self) {
        self.records.clear();
        self.count = 0;
        self.first_timestamp = None;
        self.last_timestamp = None;
    }

    /// Room for records in an empty buffer.
    const fn capacity(&self) -> usize {
        (self.size as usize).saturating_sub(layout::BUFFER_HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(timestamp: i64, data: usize) -> EventRecord {
        EventRecord {
            timestamp,
            user_data: vec![0x11; data],
            ..EventRecord::default()
        }
    }

    #[test]
    fn records_are_padded_to_eight_bytes() {
        let mut buffer = Buffer::new(0x1000, 3);
        buffer.try_append(&record(10, 1)).unwrap();
        assert_eq!(buffer.used(), 72 + 88);
        assert_eq!(buffer.records()[81..], [0; 7]);
        buffer.try_append(&record(20, 8)).unwrap();
        assert_eq!(buffer.used(), 72 + 88 + 88);
        assert_eq!(buffer.count(), 2);
        assert_eq!(buffer.events(), [record(10, 1), record(20, 8)]);
        assert_eq!(buffer.first_timestamp(), Some(10));
        assert_eq!(buffer.last_timestamp(), Some(20));
    }

    #[test]
    fn full_buffer_refuses_and_stays_as_it_is() {
        let mut buffer = Buffer::new(72 + 2 * 88, 0);
        buffer.try_append(&record(1, 8)).unwrap();
        buffer.try_append(&record(2, 8)).unwrap();
        let before = buffer.clone();
        assert_eq!(buffer.try_append(&record(3, 0)), Err(AppendError::Full));
        assert_eq!(buffer, before);
    }

    #[test]
    fn record_that_no_buffer_of_the_size_holds_is_told_apart() {
        let mut buffer = Buffer::new(0x1000, 0);
        let room = 0x1000 - 72 - 80;
        assert_eq!(buffer.try_append(&record(1, room)), Ok(()));
        assert_eq!(
            buffer.try_append(&record(1, room + 1)),
            Err(AppendError::NeverFits {
                size: 0x1000 - 72 + 8,
                capacity: 0x1000 - 72
            })
        );
        assert_eq!(
            buffer.try_append(&record(1, 65536)),
            Err(AppendError::Encode(EncodeError::TooLarge { size: 65616 }))
        );
        assert!(matches!(
            Buffer::new(10, 0).try_append(&record(1, 0)),
            Err(AppendError::NeverFits { capacity: 0, .. })
        ));
    }

    #[test]
    fn reset_buffer_is_as_new() {
        let mut buffer = Buffer::new(0x1000, 5);
        buffer.try_append(&record(1, 8)).unwrap();
        assert!(!buffer.is_empty());
        buffer.reset();
        assert_eq!(buffer, Buffer::new(0x1000, 5));
        assert!(buffer.is_empty());
        assert_eq!(buffer.used(), 72);
    }
}
