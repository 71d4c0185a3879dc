//! Records of any form as events.

use crate::decode::kernel;
use crate::decode::{Decoded, Decoder, Kind, Value};
use crate::read::{EventRef, RecordRef};
use crate::record::EventDescriptor;

/// The process or thread id that Windows reports for records whose header contains none.
const UNKNOWN_ID: u32 = u32::MAX;

/// Decodes a record of any form. Also returns its common parts. Returns `None` if its form is
/// unknown, or if it is shorter than its header.
#[inline]
pub fn decode_record<'r>(
    record: &RecordRef<'r>,
    decoder: &mut Decoder<'_>,
) -> Option<(EventRef<'r>, Decoded)> {
    let catalog = decoder.catalog();
    let (event, found) = if let Some(event) = record.event() {
        let own = decoder.decode(&event);
        if kernel::is_described(&own) {
            return Some((event, own));
        }
        (event, kernel::or_by_class(own, &event, record.clock(), catalog))
    } else {
        let header = kernel::RecordHeader::from_record(record)?;
        let header = kernel::RecordHeader { code_page: catalog.code_page(), ..header };
        let found = kernel::decode_with(header, record.bytes)?;
        let found = found.described_by(catalog.formats()).described_by_classes(catalog.classes());
        let found = found.into_decoded(record.clock(), record.processor, record.timestamp);
        (view_of(record, &header), found)
    };
    let is_event = found.kind == Kind::Event;
    Some((event, if is_event { found } else { in_hex(found, catalog.in_hex()) }))
}

/// Changes the integers in fields with these names to hexadecimal. The size of a negative number is
/// unknown in the kernel's layouts; it is assumed to be 32 bits if the number fits.
fn in_hex(mut event: Decoded, names: &[String]) -> Decoded {
    let fields = event.fields.iter_mut();
    for (_, value) in fields.filter(|(field, _)| names.iter().any(|name| **name == **field)) {
        *value =
            match *value {
                Value::UInt(number) => Value::Hex(number),
                Value::Int(number) => Value::Hex(i32::try_from(number).map_or_else(
                    |_| number.cast_unsigned(),
                    |number| number.cast_unsigned().into(),
                )),
                _ => continue,
            };
    }
    event
}

/// Returns the common parts of a record of any form. Returns `None` if its form is unknown, or if
/// it is shorter than its header.
pub fn view<'a>(record: &RecordRef<'a>) -> Option<EventRef<'a>> {
    record.event().or_else(|| {
        let header = kernel::RecordHeader::from_record(record)?;
        Some(view_of(record, &header))
    })
}

/// Returns the common parts of a record with a kernel header.
fn view_of<'a>(record: &RecordRef<'a>, header: &kernel::RecordHeader) -> EventRef<'a> {
    let [version, _] = header.version.to_le_bytes();
    EventRef {
        thread_id: header.thread_id.unwrap_or(UNKNOWN_ID),
        process_id: header.process_id.unwrap_or(UNKNOWN_ID),
        timestamp: record.timestamp,
        provider: header.guid.unwrap_or_default(),
        descriptor: EventDescriptor {
            id: header.hook.unwrap_or(header.message),
            version,
            level: header.level,
            opcode: header.opcode,
            ..EventDescriptor::default()
        },
        activity_id: etw_wire::Guid::default(),
        kernel_time: header.kernel_time,
        user_time: header.user_time,
        event_property: 0,
        items: crate::read::Items::default(),
        user_data: record.bytes.get(header.payload..).unwrap_or_default(),
        time: record.time(),
        processor: record.processor,
        buffer: record.buffer,
        offset: record.offset,
        pointer_size: header.pointer_size,
        flags: 0,
        size: record.bytes.len(),
    }
}
