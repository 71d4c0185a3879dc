//! The event records of a file.

use etw_wire::Guid;

use crate::cursor::Cursor;
use crate::layout;
use crate::record::{EventDescriptor, EventRecord, ExtendedItem, ext_type};
use crate::time::FileTime;

/// The size of the pointers in an event's user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PointerSize {
    /// The event was written by 32-bit code.
    Four,
    /// The event was written by 64-bit code.
    #[default]
    Eight,
}

impl PointerSize {
    /// Returns a machine's pointer size, given the `PointerSize` in a trace's header. It is 8 on
    /// all but 32-bit machines.
    pub(crate) const fn of_trace(bytes: u32) -> Self {
        if bytes == 4 { Self::Four } else { Self::Eight }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// An event from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The event record.
    pub record: EventRecord,
    /// The time at which the event was written.
    pub time: FileTime,
    /// The processor on which the event was written.
    pub processor: u16,
    /// The number of the buffer, in file order.
    pub buffer: u32,
    /// The offset of the record in the file.
    pub offset: u64,
    /// The size of the pointers in the user data.
    pub pointer_size: PointerSize,
    /// The `Flags` of the `EVENT_HEADER`.
    pub flags: u16,
}

impl Event {
    /// Returns the event with borrowed data.
    #[must_use]
    pub fn view(&self) -> EventRef<'_> {
        let record = &self.record;
        EventRef {
            thread_id: record.thread_id,
            process_id: record.process_id,
            timestamp: record.timestamp,
            provider: record.provider,
            descriptor: record.descriptor,
            activity_id: record.activity_id,
            kernel_time: record.kernel_time,
            user_time: record.user_time,
            event_property: record.event_property,
            items: Items(Source::Owned(&record.extended)),
            user_data: &record.user_data,
            time: self.time,
            processor: self.processor,
            buffer: self.buffer,
            offset: self.offset,
            pointer_size: self.pointer_size,
            flags: self.flags | if record.string_only { layout::FLAG_STRING_ONLY } else { 0 },
            size: record.encoded_size(),
        }
    }
}

/// An event with borrowed data, for example from the buffer that contains the event.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'a> {
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
    /// The `EventProperty` bits.
    pub event_property: u16,
    /// The extended items.
    pub items: Items<'a>,
    /// The event's payload.
    pub user_data: &'a [u8],
    /// The time at which the event was written.
    pub time: FileTime,
    /// The processor on which the event was written.
    pub processor: u16,
    /// The number of the buffer, in file order.
    pub buffer: u32,
    /// The offset of the record: its buffer's offset in the file plus its offset in the
    /// uncompressed buffer.
    pub offset: u64,
    /// The size of the pointers in the user data.
    pub pointer_size: PointerSize,
    /// The `Flags` of the `EVENT_HEADER`.
    pub flags: u16,
    /// The size of the record in bytes, without padding.
    pub size: usize,
}

impl<'a> EventRef<'a> {
    /// Returns the data of the first extended item of a type (see [`ext_type`]).
    #[must_use]
    pub fn item(&self, ext_type: u16) -> Option<&'a [u8]> {
        let mut items = self.items.iter();
        items.find_map(|(found, data)| (found == ext_type).then_some(data))
    }

    /// Returns the related activity's id.
    #[must_use]
    pub fn related_activity(&self) -> Option<Guid> {
        let id = self.item(ext_type::RELATED_ACTIVITYID)?;
        Some(Guid::from_bytes(id.try_into().ok()?))
    }

    /// Returns true if the user data is a single string, as `EtwWriteString` writes it.
    pub(crate) const fn is_string_only(&self) -> bool {
        self.flags & layout::FLAG_STRING_ONLY != 0
    }

    /// Returns the event with owned data.
    #[must_use]
    pub fn to_event(&self) -> Event {
        Event {
            record: EventRecord {
                thread_id: self.thread_id,
                process_id: self.process_id,
                timestamp: self.timestamp,
                provider: self.provider,
                descriptor: self.descriptor,
                activity_id: self.activity_id,
                kernel_time: self.kernel_time,
                user_time: self.user_time,
                event_property: self.event_property,
                string_only: self.is_string_only(),
                extended: self
                    .items
                    .iter()
                    .map(|(ext_type, data)| ExtendedItem { ext_type, data: data.to_vec() })
                    .collect(),
                user_data: self.user_data.to_vec(),
            },
            time: self.time,
            processor: self.processor,
            buffer: self.buffer,
            offset: self.offset,
            pointer_size: self.pointer_size,
            flags: self.flags,
        }
    }
}

/// An event's extended items, in file order.
#[derive(Clone, Copy, Debug)]
pub struct Items<'a>(Source<'a>);

impl Default for Items<'_> {
    fn default() -> Self {
        Self(Source::Owned(&[]))
    }
}

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    /// The bytes of the items in a record, checked by [`items_end`].
    Raw(&'a [u8]),
    Owned(&'a [ExtendedItem]),
}

impl<'a> Items<'a> {
    /// Returns the types (see [`ext_type`]) and data of the items.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let (raw, owned): (&[u8], &[ExtendedItem]) = match self.0 {
            Source::Raw(bytes) => (bytes, &[]),
            Source::Owned(items) => (&[], items),
        };
        let mut c = Cursor::new(raw);
        let raw = std::iter::from_fn(move || {
            let (ext_type, data, _) = next_item(&mut c)?;
            Some((ext_type, data))
        });
        raw.chain(owned.iter().map(|item| (item.ext_type, &*item.data)))
    }
}

/// Returns the offset of the user data in a record of [`layout::EVENT_HEADER`] bytes or more, and
/// true if an extended item that starts there extends past the record. Such an item is treated as
/// user data.
pub(super) fn items_end(record: &[u8]) -> (usize, bool) {
    let mut c = Cursor::new(record);
    c.take(layout::EVENT_HEADER);
    let flags = record.get(4..6).map_or(0, |flags| u16::from(flags[0]));
    if flags & layout::FLAG_EXTENDED_INFO == 0 {
        return (layout::EVENT_HEADER, false);
    }
    loop {
        let start = c.position();
        match next_item(&mut c) {
            None => return (start, true),
            Some((.., false)) => return (c.position(), false),
            Some((.., true)) => {}
        }
    }
}

/// The location of a record, and its time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    pub time: FileTime,
    pub processor: u16,
    pub buffer: u32,
    pub offset: u64,
    pub pointer_size: PointerSize,
}

/// Reads a record whose user data starts at `user_data` (see [`items_end`]).
pub(super) fn view(bytes: &[u8], user_data: usize, place: Place) -> Option<EventRef<'_>> {
    let mut c = Cursor::new(bytes);
    c.take(4)?; // size and header type
    Some(EventRef {
        flags: c.u16()?,
        event_property: c.u16()?,
        thread_id: c.u32()?,
        process_id: c.u32()?,
        timestamp: c.i64()?,
        provider: Guid::from_bytes(c.array()?),
        descriptor: EventDescriptor::read(&mut c)?,
        kernel_time: c.u32()?,
        user_time: c.u32()?,
        activity_id: Guid::from_bytes(c.array()?),
        items: Items(Source::Raw(bytes.get(layout::EVENT_HEADER..user_data)?)),
        user_data: bytes.get(user_data..)?,
        time: place.time,
        processor: place.processor,
        buffer: place.buffer,
        offset: place.offset,
        pointer_size: place.pointer_size,
        size: bytes.len(),
    })
}

/// Reads a whole record. Returns `None` if it is shorter than its header, or if an extended item
/// extends past it.
pub fn parse(bytes: &[u8]) -> Option<EventRecord> {
    let header = layout::EVENT_HEADER <= bytes.len();
    let (user_data, false) = header.then(|| items_end(bytes))? else {
        return None;
    };
    Some(view(bytes, user_data, Place::default())?.to_event().record)
}

/// Reads an extended item (ETL-5.12), and the flag that another item follows.
fn next_item<'a>(c: &mut Cursor<'a>) -> Option<(u16, &'a [u8], bool)> {
    let start = *c;
    let item = item(c);
    if item.is_none() {
        *c = start;
    }
    item
}

fn item<'a>(c: &mut Cursor<'a>) -> Option<(u16, &'a [u8], bool)> {
    let available = c.rest().len();
    let total = usize::from(c.u16()?);
    let ext_type = c.u16()?;
    let linkage = c.u16()?;
    let data_size = usize::from(c.u16()?);
    let data = c.take(data_size)?;
    // The item's size includes its padding. An impossible size is replaced by the size of the data.
    // At the end of the record, the padding can be missing.
    let used = layout::ITEM_HEADER + data_size;
    let total = if total >= used && total.is_multiple_of(8) { total } else { layout::align8(used) };
    c.take(total.min(available).checked_sub(used)?)?;
    Some((ext_type, data, linkage & 1 != 0))
}
