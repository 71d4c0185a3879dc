//! Event records as Windows delivers them to consumers.

use std::{ptr, slice};

use etl_file::{
    Event, EventDescriptor, EventRecord, ExtendedItem, FileTime, Guid, PointerSize, ext_type,
};
use windows_sys::Win32::System::Diagnostics::Etw::{
    EVENT_HEADER_EXTENDED_DATA_ITEM, EVENT_HEADER_FLAG_32_BIT_HEADER,
    EVENT_HEADER_FLAG_STRING_ONLY, EVENT_RECORD,
};

use crate::guid::from_windows;

/// Returns an event's data.
pub(crate) const fn data(record: &EVENT_RECORD) -> &[u8] {
    if record.UserData.is_null() {
        return &[];
    }
    // SAFETY: ETW passes a pointer to `UserDataLength` bytes, which are valid as long as the
    // record.
    unsafe { slice::from_raw_parts(record.UserData.cast(), record.UserDataLength as usize) }
}

const fn items(record: &EVENT_RECORD) -> &[EVENT_HEADER_EXTENDED_DATA_ITEM] {
    if record.ExtendedData.is_null() {
        return &[];
    }
    // SAFETY: ETW passes a pointer to `ExtendedDataCount` items, which are valid as long as the
    // record.
    unsafe { slice::from_raw_parts(record.ExtendedData, record.ExtendedDataCount as usize) }
}

/// Returns an extended data item's data.
fn item_data(item: &EVENT_HEADER_EXTENDED_DATA_ITEM) -> &[u8] {
    let address = usize::try_from(item.DataPtr).unwrap_or(0);
    if address == 0 {
        return &[];
    }
    // SAFETY: the item's pointer refers to `DataSize` bytes, which are valid as long as the record.
    unsafe {
        slice::from_raw_parts(ptr::with_exposed_provenance(address), usize::from(item.DataSize))
    }
}

/// Returns the related activity of an event.
pub(crate) fn related(record: &EVENT_RECORD) -> Option<Guid> {
    let item = items(record).iter().find(|item| item.ExtType == ext_type::RELATED_ACTIVITYID)?;
    item_data(item).first_chunk().copied().map(Guid::from_bytes)
}

/// Returns the processor on which an event was written.
pub(crate) const fn processor(record: &EVENT_RECORD) -> u16 {
    // SAFETY: both members of the union are numbers.
    unsafe { record.BufferContext.Anonymous.ProcessorIndex }
}

/// Returns true if the event was written by 32-bit code.
pub(crate) fn is_32_bit(record: &EVENT_RECORD) -> bool {
    u32::from(record.EventHeader.Flags) & EVENT_HEADER_FLAG_32_BIT_HEADER != 0
}

/// Copies an event, so that it can be decoded like an event in a file. The timestamp is the event's
/// time, because consumers do not receive the clock reading.
#[must_use]
pub fn event(record: &EVENT_RECORD) -> Event {
    let header = &record.EventHeader;
    let descriptor = header.EventDescriptor;
    // SAFETY: both members of the union are numbers.
    let times = unsafe { header.Anonymous.Anonymous };
    Event {
        record: EventRecord {
            thread_id: header.ThreadId,
            process_id: header.ProcessId,
            timestamp: header.TimeStamp,
            provider: from_windows(&header.ProviderId),
            descriptor: EventDescriptor {
                id: descriptor.Id,
                version: descriptor.Version,
                channel: descriptor.Channel,
                level: descriptor.Level,
                opcode: descriptor.Opcode,
                task: descriptor.Task,
                keyword: descriptor.Keyword,
            },
            activity_id: from_windows(&header.ActivityId),
            kernel_time: times.KernelTime,
            user_time: times.UserTime,
            event_property: header.EventProperty,
            string_only: u32::from(header.Flags) & EVENT_HEADER_FLAG_STRING_ONLY != 0,
            extended: items(record)
                .iter()
                .map(|item| ExtendedItem { ext_type: item.ExtType, data: item_data(item).to_vec() })
                .collect(),
            user_data: data(record).to_vec(),
        },
        time: FileTime::from_raw(header.TimeStamp),
        processor: processor(record),
        buffer: 0,
        offset: 0,
        pointer_size: if is_32_bit(record) { PointerSize::Four } else { PointerSize::Eight },
        flags: header.Flags,
    }
}
