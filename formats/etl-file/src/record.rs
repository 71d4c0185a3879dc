//! The event record: `EVENT_HEADER`, extended data items, user data.

use etw_wire::Guid;

use crate::cursor::Cursor;
use crate::layout::{self, Form};

/// The descriptor of an event (`EVENT_DESCRIPTOR`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventDescriptor {
    /// The event's id in its manifest; 0 for a `TraceLogging` event.
    pub id: u16,
    /// The version of the event's layout.
    pub version: u8,
    /// The channel: 11 for `TraceLogging`, 12 for a manifest event of a provider with traits, 16
    /// and above for channels that the manifest defines.
    pub channel: u8,
    /// The level, from 1 (critical) to 5 (verbose); 0 passes every level filter.
    pub level: u8,
    /// The opcode: 0 is info, 1 start, 2 stop; providers define 10 to 239.
    pub opcode: u8,
    /// The task; 0 means none.
    pub task: u16,
    /// The keyword mask; providers define the low 48 bits.
    pub keyword: u64,
}

impl EventDescriptor {
    /// Reads the 16 bytes of the structure in an event record or `TRACE_EVENT_INFO`.
    pub(crate) fn read(c: &mut Cursor<'_>) -> Option<Self> {
        Some(Self {
            id: c.u16()?,
            version: c.u8()?,
            channel: c.u8()?,
            level: c.u8()?,
            opcode: c.u8()?,
            task: c.u16()?,
            keyword: c.u64()?,
        })
    }
}

/// The types of extended data items (`EVENT_HEADER_EXT_TYPE_*`).
pub mod ext_type {
    /// The related activity's id, a GUID.
    pub const RELATED_ACTIVITYID: u16 = 1;
    /// The security identifier of the user.
    pub const SID: u16 = 2;
    /// The terminal session id, 4 bytes.
    pub const TS_ID: u16 = 3;
    /// The instance and the parent instance, with the parent's GUID.
    pub const INSTANCE_INFO: u16 = 4;
    /// A call stack with 32-bit addresses, after a 64-bit match id.
    pub const STACK_TRACE32: u16 = 5;
    /// A call stack with 64-bit addresses, after a 64-bit match id.
    pub const STACK_TRACE64: u16 = 6;
    /// The index of an event-based sample.
    pub const PEBS_INDEX: u16 = 7;
    /// Performance monitoring counters.
    pub const PMC_COUNTERS: u16 = 8;
    /// The key of a packaged application.
    pub const PSM_KEY: u16 = 9;
    /// The event's key, which is equal in all sessions.
    pub const EVENT_KEY: u16 = 10;
    /// `TraceLogging` event metadata.
    pub const EVENT_SCHEMA_TL: u16 = 11;
    /// The provider's traits.
    pub const PROV_TRAITS: u16 = 12;
    /// The start key of the process, 8 bytes.
    pub const PROCESS_START_KEY: u16 = 13;
    /// The control GUID of the provider.
    pub const CONTROL_GUID: u16 = 14;
    /// The difference between the performance counters of the host and a container, 8 bytes.
    pub const QPC_DELTA: u16 = 15;
    /// The id of the container, as text.
    pub const CONTAINER_ID: u16 = 16;
    /// The key of a call stack, after a 64-bit match id: 4 bytes and 4 bytes of padding.
    pub const STACK_KEY32: u16 = 17;
    /// The key of a call stack, after a 64-bit match id: 8 bytes.
    pub const STACK_KEY64: u16 = 18;
}

/// Data that ETW attaches to an event in addition to its user data
/// (`EVENT_HEADER_EXTENDED_DATA_ITEM`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtendedItem {
    /// The type, one of [`ext_type`].
    pub ext_type: u16,
    /// The data, without padding.
    pub data: Vec<u8>,
}

impl ExtendedItem {
    /// Returns an item with the id of the related activity.
    #[must_use]
    pub fn related_activity(id: Guid) -> Self {
        Self { ext_type: ext_type::RELATED_ACTIVITYID, data: id.to_bytes().to_vec() }
    }

    /// Returns the size on disk, including header and padding.
    const fn encoded_size(&self) -> usize {
        layout::align8(layout::ITEM_HEADER + self.data.len())
    }
}

/// An event as a session records it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventRecord {
    /// The thread that wrote the event.
    pub thread_id: u32,
    /// The process that wrote the event.
    pub process_id: u32,
    /// The raw timestamp: a reading of the session's clock.
    pub timestamp: i64,
    /// The provider's GUID.
    pub provider: Guid,
    /// The id, version, channel, level, opcode, task and keyword.
    pub descriptor: EventDescriptor,
    /// The activity id; the null GUID means none.
    pub activity_id: Guid,
    /// The processor time in kernel mode, in ticks.
    pub kernel_time: u32,
    /// The processor time in user mode, in ticks.
    pub user_time: u32,
    /// The `EventProperty` bits: 1 XML, 2 forwarded XML, 4 legacy event log, 8
    /// reloggable.
    pub event_property: u16,
    /// True if the user data is a single NUL-terminated UTF-16 string, as `EtwWriteString` and
    /// `EventWriteString` write it.
    pub string_only: bool,
    /// The extended data items, in file order.
    pub extended: Vec<ExtendedItem>,
    /// The event's payload.
    pub user_data: Vec<u8>,
}

/// A record of any form, encoded once for several buffers. In each buffer it gets a separate
/// timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedRecord {
    /// The record with its padding.
    bytes: Vec<u8>,
    /// The size without the padding.
    size: usize,
    /// The offset of the timestamp, if the record has one.
    timestamp: Option<usize>,
}

impl EncodedRecord {
    /// Returns the range of the timestamp in the record.
    pub(crate) const fn timestamp_range(&self) -> Option<std::ops::Range<usize>> {
        match self.timestamp {
            Some(start) => Some(start..start + 8),
            None => None,
        }
    }

    /// Encodes an event.
    ///
    /// # Errors
    /// Fails with [`EncodeError::TooLarge`] if the record exceeds
    /// 65,535 bytes.
    pub fn new(event: &EventRecord) -> Result<Self, EncodeError> {
        let size = event.encoded_size();
        let mut bytes = Vec::with_capacity(layout::align8(size));
        event.encode_into(&mut bytes)?;
        bytes.resize(layout::align8(size), 0);
        Ok(Self { bytes, size, timestamp: Some(layout::EVENT_TIMESTAMP) })
    }

    /// Takes exactly one record of any form, without padding.
    ///
    /// # Errors
    /// Fails with [`EncodeError::NotARecord`] unless the bytes are a record with the right
    /// size field.
    pub fn from_bytes(record: &[u8]) -> Result<Self, EncodeError> {
        let size = record.len();
        let form = Form::recognize(record).filter(|_| layout::record_size(record) == Some(size));
        let form = form.ok_or(EncodeError::NotARecord { size })?;
        let mut bytes = record.to_vec();
        bytes.resize(layout::align8(size), 0);
        Ok(Self { timestamp: form.timestamp_offset(record), bytes, size })
    }

    /// Returns the record's size in bytes, without the padding that follows it in a buffer.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns the record with its padding.
    pub(crate) fn padded(&self) -> &[u8] {
        &self.bytes
    }
}

/// The reason why an event cannot be encoded as a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The record's size does not fit in its 16-bit size field.
    #[error("the record takes {size} bytes, but a record can take at most 65535")]
    TooLarge {
        /// The size of the header, the extended items and the user data.
        size: usize,
    },
    /// A kernel record's header cannot contain this number of additional items.
    #[error("the record's header has {items} additional items, but it can have at most 8")]
    ExtraHeader {
        /// The number of items.
        items: usize,
    },
    /// The bytes are not exactly one record.
    #[error("{size} bytes are not one whole record, whose header states its size")]
    NotARecord {
        /// The number of bytes.
        size: usize,
    },
}

impl EventRecord {
    /// Returns the first extended item of a kind.
    #[must_use]
    pub fn item(&self, ext_type: u16) -> Option<&[u8]> {
        self.extended.iter().find(|item| item.ext_type == ext_type).map(|item| item.data.as_slice())
    }

    /// Returns the related activity's id, if the event has one.
    #[must_use]
    pub fn related_activity(&self) -> Option<Guid> {
        let bytes = self.item(ext_type::RELATED_ACTIVITYID)?;
        bytes.try_into().ok().map(Guid::from_bytes)
    }

    /// Returns the record's size in bytes: header, extended items and user data, without the
    /// padding that follows it in a buffer.
    #[must_use]
    pub fn encoded_size(&self) -> usize {
        let items: usize = self.extended.iter().map(ExtendedItem::encoded_size).sum();
        layout::EVENT_HEADER + items + self.user_data.len()
    }

    /// Encodes the record as on disk, with a 64-bit header and without trailing padding.
    ///
    /// # Errors
    /// Fails with [`EncodeError::TooLarge`] if the record exceeds
    /// 65,535 bytes.
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = Vec::with_capacity(self.encoded_size());
        self.encode_into(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends the record to `out`; on error, `out` is unchanged.
    pub(crate) fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let size = self.encoded_size();
        let size = u16::try_from(size).map_err(|_| EncodeError::TooLarge { size })?;
        let descriptor = &self.descriptor;
        out.extend(size.to_le_bytes());
        out.extend([layout::HEADER_EVENT64, layout::MARKER]);
        let items = if self.extended.is_empty() { 0 } else { layout::FLAG_EXTENDED_INFO };
        let string = if self.string_only { layout::FLAG_STRING_ONLY } else { 0 };
        out.extend((items | string).to_le_bytes());
        out.extend(self.event_property.to_le_bytes());
        out.extend(self.thread_id.to_le_bytes());
        out.extend(self.process_id.to_le_bytes());
        out.extend(self.timestamp.to_le_bytes());
        out.extend(self.provider.to_bytes());
        out.extend(descriptor.id.to_le_bytes());
        out.extend([descriptor.version, descriptor.channel, descriptor.level, descriptor.opcode]);
        out.extend(descriptor.task.to_le_bytes());
        out.extend(descriptor.keyword.to_le_bytes());
        out.extend(self.kernel_time.to_le_bytes());
        out.extend(self.user_time.to_le_bytes());
        out.extend(self.activity_id.to_bytes());
        for (i, item) in self.extended.iter().enumerate() {
            encode_item(item, i + 1 < self.extended.len(), out);
        }
        out.extend(&self.user_data);
        Ok(())
    }
}

/// Appends an item that is known to fit in a record, so its size fits in 16 bits.
fn encode_item(item: &ExtendedItem, more_follow: bool, out: &mut Vec<u8>) {
    let total = item.encoded_size();
    let end = out.len() + total;
    out.extend(low_u16(total));
    out.extend(item.ext_type.to_le_bytes());
    out.extend(u16::from(more_follow).to_le_bytes());
    out.extend(low_u16(item.data.len()));
    out.extend(&item.data);
    out.resize(end, 0);
}

/// Returns the two bytes of a size less than 65,536.
const fn low_u16(size: usize) -> [u8; 2] {
    let bytes = size.to_le_bytes();
    [bytes[0], bytes[1]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> EventRecord {
        EventRecord {
            thread_id: 0x44,
            process_id: 0x55,
            timestamp: 0x19_d90b_add2,
            provider: Guid::from_u128(0x22fb_2cd6_0e7b_422b_a0c7_2fad_1fd0_e716),
            descriptor: EventDescriptor {
                id: 1,
                level: 4,
                opcode: 1,
                task: 1,
                keyword: 0x8000_0000_0000_0010,
                ..EventDescriptor::default()
            },
            user_data: vec![0xAA; 44],
            ..EventRecord::default()
        }
    }

    #[test]
    fn header_bytes_are_those_of_the_format() {
        let bytes = sample().encode().unwrap();
        let expected: [u8; 64] = [
            0x7c, 0, 0x13, 0xc0, 0, 0, 0, 0, 0x44, 0, 0, 0, 0x55, 0, 0, 0, 0xd2, 0xad, 0x0b, 0xd9,
            0x19, 0, 0, 0, 0xd6, 0x2c, 0xfb, 0x22, 0x7b, 0x0e, 0x2b, 0x42, 0xa0, 0xc7, 0x2f, 0xad,
            0x1f, 0xd0, 0xe7, 0x16, 1, 0, 0, 0, 4, 1, 1, 0, 0x10, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0,
            0, 0, 0, 0, 0,
        ];
        assert_eq!(bytes[..64], expected);
        assert_eq!(bytes[64..80], [0; 16]);
        assert_eq!(bytes[80..], [0xAA; 44]);
    }

    #[test]
    fn items_are_padded_and_linked() {
        let mut record = sample();
        record.extended = vec![
            ExtendedItem::related_activity(Guid::from_bytes([7; 16])),
            ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: vec![5, 0, 0, b'E', 0] },
        ];
        let bytes = record.encode().unwrap();
        assert_eq!(bytes[4..6], [1, 0], "EXTENDED_INFO");
        assert_eq!(bytes[80..88], [0x18, 0, 1, 0, 1, 0, 16, 0]);
        assert_eq!(bytes[88..104], [7; 16]);
        assert_eq!(bytes[104..112], [0x10, 0, 11, 0, 0, 0, 5, 0]);
        assert_eq!(bytes[112..120], [5, 0, 0, b'E', 0, 0, 0, 0]);
        assert_eq!(bytes.len(), record.encoded_size());
        assert_eq!(bytes.len(), 80 + 24 + 16 + 44);
    }

    #[test]
    fn largest_record_has_65535_bytes() {
        let mut record = sample();
        record.user_data = vec![1; 65535 - 80];
        assert_eq!(record.encode().unwrap()[..2], [0xFF, 0xFF]);
        record.user_data.push(1);
        assert_eq!(record.encode(), Err(EncodeError::TooLarge { size: 65536 }));
    }

    #[test]
    fn a_refused_record_leaves_the_output_unchanged() {
        let mut record = sample();
        record.user_data = vec![1; 70000];
        let mut out = vec![1, 2, 3];
        assert!(record.encode_into(&mut out).is_err());
        assert_eq!(out, [1, 2, 3]);
    }

    #[test]
    fn items_are_found_by_their_types() {
        let related = Guid::from_u128(0xB);
        let item = |ext_type, data: &[u8]| ExtendedItem { ext_type, data: data.to_vec() };
        let record = EventRecord {
            extended: vec![
                item(ext_type::PROV_TRAITS, b"one"),
                ExtendedItem::related_activity(related),
                item(ext_type::PROV_TRAITS, b"two"),
            ],
            ..EventRecord::default()
        };
        assert_eq!(record.item(ext_type::PROV_TRAITS), Some(&b"one"[..]));
        assert_eq!(record.item(ext_type::EVENT_SCHEMA_TL), None);
        assert_eq!(record.related_activity(), Some(related));
        assert_eq!(EventRecord::default().related_activity(), None);
    }
}
