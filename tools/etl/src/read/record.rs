//! Records, borrowed from the buffer that contains them.

use super::event::{self, EventRef, Place, PointerSize};
use super::other::{Form, Other, OtherKind};
use crate::time::{Clock, FileTime};

/// A record of any form, borrowed from the buffer that contains it.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// The whole record: its header and its payload, without the padding.
    pub bytes: &'a [u8],
    /// The processor that the buffer belongs to.
    pub processor: u16,
    /// Number of the buffer, in the order of the file.
    pub buffer: u32,
    /// Offset of the record: the offset of its buffer in the file plus its offset in the
    /// uncompressed buffer.
    pub offset: u64,
    /// The reading of the session's clock by which the record is sorted: its own or, for a record
    /// without one, that of the record before it.
    pub timestamp: i64,
    pub(super) clock: &'a Clock,
    pub(super) form: Form,
    /// Offset of the user data in an event record.
    pub(super) user_data: usize,
}

impl<'a> RecordRef<'a> {
    /// Returns the absolute time of [`timestamp`](Self::timestamp).
    #[must_use]
    pub fn time(&self) -> FileTime {
        self.clock.to_file_time(self.timestamp)
    }

    /// Returns the size of the pointers on the machine or in the process that wrote the record, as
    /// the record's header type gives it.
    #[must_use]
    pub fn pointer_size(&self) -> PointerSize {
        self.form.pointer_size(self.bytes)
    }

    /// Returns the kind of the record, or `None` if it is an event record.
    #[must_use]
    pub fn kind(&self) -> Option<OtherKind> {
        let (kind, _) = self.form.describe(self.bytes)?;
        Some(kind)
    }

    /// Returns the event, if the record is an event record.
    #[must_use]
    pub fn event(&self) -> Option<EventRef<'a>> {
        if !self.form.is_event() {
            return None;
        }
        let place = Place {
            time: self.time(),
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
        let (kind, timestamp) = self.form.describe(self.bytes)?;
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
