//! A session's buffer in memory.

use crate::layout::{self, Form};
use crate::read::parse_event as parse;
use crate::record::{EncodeError, EncodedRecord, EventRecord};

/// A processor's buffer, which is filled in memory and flushed to a log file as a whole.
///
/// The buffer contains encoded records, each padded to 8 bytes. Flushing adds the header and the
/// filler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    size: u32,
    processor: u16,
    records: Vec<u8>,
    count: u32,
    first_timestamp: Option<i64>,
    last_timestamp: Option<i64>,
}

/// The reason why a record was not appended. The buffer is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The buffer is full: flush it and try again.
    #[error("the buffer is full")]
    Full,
    /// The record does not even fit in an empty buffer of this size.
    #[error("the record takes {size} bytes with its padding, but an empty buffer holds {capacity}")]
    NeverFits {
        /// The size of the record, padded to 8 bytes.
        size: usize,
        /// The capacity of an empty buffer.
        capacity: usize,
    },
    /// The event cannot be encoded as a record.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The bytes are not exactly one event record.
    #[error("cannot append {size} bytes: expected one whole event record with a 64-bit header")]
    NotARecord {
        /// The number of bytes.
        size: usize,
    },
}

impl Buffer {
    /// Returns an empty buffer for a processor. `size` is the buffer's size on disk, including the
    /// header.
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

    /// Returns the buffer, reassigned to the processor with this index.
    #[must_use]
    pub const fn on_processor(mut self, processor: u16) -> Self {
        self.processor = processor;
        self
    }

    /// Appends a record; on error, the buffer is unchanged.
    ///
    /// Timestamps within a buffer should not decrease, so the caller should append records in clock
    /// order.
    ///
    /// # Errors
    /// Fails with [`AppendError::Full`] if the record only fits in an empty buffer, and
    /// with [`AppendError::NeverFits`] or [`AppendError::Encode`] if it fits in no buffer.
    pub fn try_append(&mut self, record: &EventRecord) -> Result<(), AppendError> {
        self.check(record.encoded_size())?;
        record.encode_into(&mut self.records)?;
        self.records.resize(layout::align8(self.records.len()), 0);
        self.note(record.timestamp);
        Ok(())
    }

    /// Appends an encoded record of any form with a timestamp; on error, the buffer is unchanged. A
    /// record without a timestamp, such as some WPP messages, stays unchanged.
    ///
    /// # Errors
    /// Fails with the errors of [`try_append`](Self::try_append).
    pub fn try_append_record(
        &mut self,
        record: &EncodedRecord,
        timestamp: i64,
    ) -> Result<(), AppendError> {
        self.check(record.size())?;
        let start = self.records.len();
        self.records.extend_from_slice(record.padded());
        let appended = self.records.get_mut(start..).unwrap_or_default();
        let place = record.timestamp_range();
        if let Some(place) = place.and_then(|place| appended.get_mut(place)) {
            place.copy_from_slice(&timestamp.to_le_bytes());
        }
        self.note(timestamp);
        Ok(())
    }

    /// Counts an appended record.
    fn note(&mut self, timestamp: i64) {
        self.count += 1;
        self.first_timestamp.get_or_insert(timestamp);
        self.last_timestamp = Some(timestamp);
    }

    /// Appends a record that [`EventRecord::encode`] encoded; on error, the buffer is unchanged.
    ///
    /// # Errors
    /// Fails with [`AppendError::NotARecord`] if the bytes are not such a record, and
    /// otherwise with the errors of [`try_append`](Self::try_append).
    pub fn try_append_encoded(&mut self, record: &[u8]) -> Result<(), AppendError> {
        let size = record.len();
        let parsed = parse(record)
            .filter(|parsed| parsed.encode().is_ok_and(|encoded| encoded == record))
            .ok_or(AppendError::NotARecord { size })?;
        self.try_append(&parsed)
    }

    /// Returns the size on disk, including the header.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Returns the processor that the buffer belongs to.
    #[must_use]
    pub const fn processor(&self) -> u16 {
        self.processor
    }

    /// Returns the number of records.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns true if the buffer contains no records. Empty buffers are never flushed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the number of used bytes, including the header; a multiple of 8.
    #[must_use]
    pub const fn used(&self) -> usize {
        layout::BUFFER_HEADER + self.records.len()
    }

    /// Returns the timestamp of the first record.
    #[must_use]
    pub const fn first_timestamp(&self) -> Option<i64> {
        self.first_timestamp
    }

    /// Returns the timestamp of the last record.
    #[must_use]
    pub const fn last_timestamp(&self) -> Option<i64> {
        self.last_timestamp
    }

    /// Returns the records as they are stored on disk, each padded to 8 bytes.
    #[must_use]
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// Returns each record without its padding, in the order of appending.
    pub fn each_record(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.records.as_slice();
        std::iter::from_fn(move || {
            // Only whole records can be appended.
            let size = layout::record_size(rest).filter(|size| *size != 0)?;
            let record = rest.get(..size)?;
            rest = rest.get(layout::align8(size)..).unwrap_or_default();
            Some(record)
        })
    }

    /// Returns only the event records, in the order of appending.
    #[must_use]
    pub fn events(&self) -> Vec<EventRecord> {
        let is_event = |record: &&[u8]| Form::recognize(record).is_some_and(Form::is_event);
        let events = self.each_record().filter(is_event);
        events.filter_map(parse).collect()
    }

    /// Checks that a record of `size` bytes currently fits. See [`EventRecord::encoded_size`].
    ///
    /// # Errors
    /// Fails with the same errors as [`try_append`](Self::try_append).
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

    /// Removes the records but keeps the memory.
    pub fn reset(&mut self) {
        self.records.clear();
        self.count = 0;
        self.first_timestamp = None;
        self.last_timestamp = None;
    }

    /// Returns the number of bytes for records in an empty buffer.
    const fn capacity(&self) -> usize {
        (self.size as usize).saturating_sub(layout::BUFFER_HEADER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(timestamp: i64, data: usize) -> EventRecord {
        EventRecord { timestamp, user_data: vec![0x11; data], ..EventRecord::default() }
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
    fn a_full_buffer_refuses_and_is_unchanged() {
        let mut buffer = Buffer::new(72 + 2 * 88, 0);
        buffer.try_append(&record(1, 8)).unwrap();
        buffer.try_append(&record(2, 8)).unwrap();
        let before = buffer.clone();
        assert_eq!(buffer.try_append(&record(3, 0)), Err(AppendError::Full));
        assert_eq!(buffer, before);
    }

    #[test]
    fn a_record_too_large_for_any_buffer_has_its_own_error() {
        let mut buffer = Buffer::new(0x1000, 0);
        let room = 0x1000 - 72 - 80;
        assert_eq!(buffer.try_append(&record(1, room)), Ok(()));
        assert_eq!(
            buffer.try_append(&record(1, room + 1)),
            Err(AppendError::NeverFits { size: 0x1000 - 72 + 8, capacity: 0x1000 - 72 })
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
    fn an_encoded_record_is_appended_as_the_event_is() {
        let event = EventRecord {
            extended: vec![crate::ExtendedItem::related_activity(crate::Guid::from_bytes([7; 16]))],
            ..record(10, 5)
        };
        let mut of_event = Buffer::new(0x1000, 0);
        of_event.try_append(&event).unwrap();
        let mut of_bytes = Buffer::new(0x1000, 0);
        let bytes = event.encode().unwrap();
        of_bytes.try_append_encoded(&bytes).unwrap();
        assert_eq!(of_bytes, of_event);
        for bytes in [
            &bytes[..bytes.len() - 1],
            &bytes[..40],
            &[],
            &[&bytes[..], &[0]].concat(),
            &[&[0_u8; 4][..], &bytes[4..]].concat(),
        ] {
            let size = bytes.len();
            let refused = of_bytes.try_append_encoded(bytes);
            assert_eq!(refused, Err(AppendError::NotARecord { size }));
            assert_eq!(of_bytes, of_event);
        }
    }

    #[test]
    fn a_record_encoded_for_several_buffers_has_the_timestamp_of_each() {
        for data in [0, 5, 8] {
            let event = EventRecord {
                extended: vec![crate::ExtendedItem::related_activity(crate::Guid::from_bytes(
                    [7; 16],
                ))],
                ..record(10, data)
            };
            let encoded = EncodedRecord::new(&event).unwrap();
            assert_eq!(encoded.size(), event.encoded_size());
            for timestamp in [10, i64::MAX] {
                let mut of_event = Buffer::new(0x1000, 0);
                let mut of_record = of_event.clone();
                let stamped = EventRecord { timestamp, ..event.clone() };
                for _ in 0..2 {
                    of_event.try_append(&stamped).unwrap();
                    of_record.try_append_record(&encoded, timestamp).unwrap();
                }
                assert_eq!(of_record, of_event);
            }
        }
        let large = EncodedRecord::new(&record(1, 0x1000)).unwrap();
        let mut buffer = Buffer::new(0x1000, 0);
        let refused = buffer.try_append_record(&large, 1);
        assert!(matches!(refused, Err(AppendError::NeverFits { .. })));
        assert!(buffer.is_empty());
        assert_eq!(
            EncodedRecord::new(&record(1, 65536)),
            Err(EncodeError::TooLarge { size: 65616 })
        );
    }

    #[test]
    fn a_cleared_buffer_is_like_a_new_one() {
        let mut buffer = Buffer::new(0x1000, 5);
        buffer.try_append(&record(1, 8)).unwrap();
        assert!(!buffer.is_empty());
        buffer.reset();
        assert_eq!(buffer, Buffer::new(0x1000, 5));
        assert!(buffer.is_empty());
        assert_eq!(buffer.used(), 72);
    }
}
