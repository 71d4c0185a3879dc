//! Event records of a file.

use etw_wire::Guid;

use crate::cursor::Cursor;
use crate::layout;
use crate::record::{EventDescriptor, EventRecord, ExtendedItem};
use crate::time::FileTime;

/// Size of the pointers in an event's user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PointerSize {
    /// The event was written by 32-bit code.
    Four,
    /// The event was written by 64-bit code.
    #[default]
    Eight,
}

impl PointerSize {
    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// An event in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event itself.
    pub record: EventRecord,
    /// The time at which the event was written.
    pub time: FileTime,
    /// The processor on which the event was written.
    pub processor: u16,
    /// Number of the buffer, in the order of the file.
    pub buffer: u32,
    /// Offset of the record in the file.
    pub offset: u64,
    /// Size of the pointers in the user data.
    pub pointer_size: PointerSize,
    /// `Flags` of the `EVENT_HEADER`.
    pub flags: u16,
}

/// The parts of an event record.
pub struct ParsedEvent {
    pub record: EventRecord,
    pub flags: u16,
    /// Offset in the record of an extended item that ends beyond the record.
    pub bad_item: Option<usize>,
}

/// `Flags` bit: extended items precede the user data.
const FLAG_EXTENDED_INFO: u16 = 1;

/// Reads a record of [`layout::EVENT_HEADER`] bytes or more.
pub fn parse(bytes: &[u8]) -> Option<ParsedEvent> {
    let mut c = Cursor::new(bytes);
    c.take(4)?; // size and header type
    let flags = c.u16()?;
    let mut record = EventRecord {
        event_property: c.u16()?,
        thread_id: c.u32()?,
        process_id: c.u32()?,
        timestamp: c.i64()?,
        provider: Guid::from_bytes(c.array()?),
        descriptor: EventDescriptor {
            id: c.u16()?,
            version: c.u8()?,
            channel: c.u8()?,
            level: c.u8()?,
            opcode: c.u8()?,
            task: c.u16()?,
            keyword: c.u64()?,
        },
        kernel_time: c.u32()?,
        user_time: c.u32()?,
        activity_id: Guid::from_bytes(c.array()?),
        extended: Vec::new(),
        user_data: Vec::new(),
    };
    let mut bad_item = None;
    if flags & FLAG_EXTENDED_INFO != 0 {
        loop {
            let start = c;
            let Some((item, more_follow)) = parse_item(&mut c) else {
                bad_item = Some(start.position());
                c = start;
                break;
            };
            record.extended.push(item);
            if !more_follow {
                break;
            }
        }
    }
    record.user_data = c.rest().to_vec();
    Some(ParsedEvent {
        record,
        flags,
        bad_item,
    })
}

/// Reads an extended item (ETL-5.12) and the flag for a following item.
fn parse_item(c: &mut Cursor<'_>) -> Option<(ExtendedItem, bool)> {
    let available = c.rest().len();
    let total = usize::from(c.u16()?);
    let ext_type = c.u16()?;
    let linkage = c.u16()?;
    let data_size = usize::from(c.u16()?);
    let data = c.take(data_size)?.to_vec();
    // The item's own size includes its padding. An impossible size is replaced by the size of the
    // data. Padding may be missing at the end of the record.
    let used = layout::ITEM_HEADER + data_size;
    let total = if total >= used && total.is_multiple_of(8) {
        total
    } else {
        layout::align8(used)
    };
    c.take(total.min(available).checked_sub(used)?)?;
    Some((ExtendedItem { ext_type, data }, linkage & 1 != 0))
}
