//! Decodes kernel events, classic events and WPP messages.
//!
//! [`decode()`] needs only a record: no file, no clock, no state. A hook (group and opcode)
//! identifies a kernel record's event; a class GUID and a type identify a classic record's event.
//! Both identify an entry in the same tables of fields by class, event and version (ETL-14.1).
//!
//! Pointer-sized numbers are read with the pointer size from the record's header, or with the other
//! size if only that fits the record exactly. Data that no table describes remains bytes, with a
//! [`Problem`] that explains why.

mod classes;
mod header;
mod lznt1;
mod payload;

use std::sync::Arc;

use etw_wire::Guid;

use crate::addresses::{Address, address};
use crate::code_page::CodePage;
use crate::decode::catalog::Catalog;
pub use crate::decode::mof::{Class, Classes, Event, Field, MofErrorKind, Type};
use crate::decode::wpp::{self, Format, Formats};
use crate::decode::{Decoded, Fields, Keywords, Kind, Problem, Value};
pub use crate::layout::wpp_flags;
use crate::read::{EventRef, OtherKind, PointerSize, RecordRef};
use crate::record::{EventDescriptor, ext_type};
use crate::time::Clock;
pub use header::{Form, RecordHeader};

/// The hooks (group and opcode) that other parts of the analysis need.
pub mod hook {
    /// The start or end of a process, or its state at the start or end of the trace.
    pub const PROCESS: [u16; 5] = [0x0301, 0x0302, 0x0303, 0x0304, 0x0327];
    /// A processor switches to another thread.
    pub const CSWITCH: u16 = 0x0524;
    /// A thread becomes ready to run.
    pub const READY_THREAD: u16 = 0x0532;
    /// A sample of the instruction pointer.
    pub const SAMPLED_PROFILE: u16 = 0x0f2e;
    /// The stack of another event.
    pub const STACK: u16 = 0x1820;
    /// The kernel part of another event's stack, given by key.
    pub const STACK_KEY_KERNEL: u16 = 0x1825;
    /// The user part of another event's stack, given by key.
    pub const STACK_KEY_USER: u16 = 0x1826;
    /// The definitions of stacks that other records refer to by key.
    pub const STACK_DEFINITIONS: [u16; 3] = [0x1822, 0x1823, 0x1824];
}

/// A decoded record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The header.
    pub header: RecordHeader,
    /// The class GUID, or the GUID of a WPP message; null if unknown.
    pub class: Guid,
    /// The class's name, if known.
    pub class_name: Option<Arc<str>>,
    /// The event's name, if known.
    pub event_name: Option<Arc<str>>,
    /// The format of a WPP message, if [`described_by`](Self::described_by) found it.
    pub format: Option<Arc<Format>>,
    /// The text of a WPP message with its arguments, if the format is known.
    pub message: Option<String>,
    /// The pointer size of the payload.
    pub pointer_size: PointerSize,
    /// The process, from the header or the payload.
    pub process_id: Option<u32>,
    /// The thread, from the header or the payload.
    pub thread_id: Option<u32>,
    /// The fields.
    pub fields: Fields,
    /// The bytes of the payload that belong to no field.
    pub leftover: Vec<u8>,
    /// The parts that could not be decoded, with the reasons.
    pub problems: Vec<Problem>,
}

impl Record {
    /// Returns a record with the values of its header only.
    fn new(header: RecordHeader) -> Self {
        Self {
            header,
            class: header.guid.unwrap_or_default(),
            class_name: None,
            event_name: None,
            format: None,
            message: None,
            pointer_size: header.pointer_size,
            process_id: header.process_id,
            thread_id: header.thread_id,
            fields: Fields::new(),
            leftover: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Returns the value of a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.fields.iter().find(|(known, _)| &**known == name)?;
        Some(value)
    }

    /// Adds the text and the arguments of a WPP message, if one of the formats describes it. Other
    /// records stay unchanged.
    #[must_use]
    pub fn described_by(mut self, formats: &Formats) -> Self {
        if self.header.form != Form::Wpp {
            return self;
        }
        let found = self.header.guid.and_then(|guid| formats.find(guid, self.header.message));
        let Some(format) = found else {
            self.problems.push(Problem::NoFormat);
            return self;
        };
        // The last field contains the bytes of all arguments.
        let Some((_, Value::Binary(arguments))) = self.fields.pop() else {
            return self;
        };
        let expanded = format.expand(
            &arguments,
            wpp::Header {
                thread: self.thread_id,
                process: self.process_id,
                sequence: self.header.wpp.sequence,
                pointer_size: self.pointer_size,
                code_page: self.header.code_page,
            },
        );
        self.problems.extend(match expanded.error {
            Some(error) => Some(Problem::Argument(error)),
            None if expanded.leftover.is_empty() => None,
            None => Some(Problem::Surplus { bytes: expanded.leftover.len() }),
        });
        self.fields.extend(expanded.fields);
        self.leftover = expanded.leftover;
        self.message = Some(expanded.text);
        self.class_name = Some(Arc::clone(&format.component)).filter(|name| !name.is_empty());
        self.event_name = Some(Arc::clone(&format.name));
        self.header.level = format.level_number().unwrap_or(0);
        self.format = Some(Arc::clone(format));
        self
    }

    /// Adds the names and fields of a classic event whose class is known only from MOF files. Other
    /// records stay unchanged.
    #[must_use]
    pub fn described_by_classes(self, classes: &Classes) -> Self {
        let class = self.header.guid.filter(|_| self.class_name.is_none());
        match class.and_then(|guid| classes.get(guid)) {
            Some(class) if self.header.form != Form::Wpp => {
                classified_by(Some(class), self.header, &self.leftover)
            }
            _ => self,
        }
    }

    /// Converts the record to a decoded event. The caller provides the clock, the processor, and a
    /// `timestamp` for records without one, such as some WPP messages.
    ///
    /// An unknown process or thread becomes `u32::MAX`, as in Windows' records. The class becomes
    /// the provider. An event without a name is named after its opcode.
    #[must_use]
    pub fn into_decoded(self, clock: &Clock, processor: u16, timestamp: i64) -> Decoded {
        let header = &self.header;
        let timestamp = header.timestamp.unwrap_or(timestamp);
        let kind = match (header.form, hook_of(header)) {
            (Form::Wpp, _) => Kind::Wpp,
            (_, Some(hook)) => Kind::Kernel { hook },
            (_, None) => Kind::Classic { class: self.class, opcode: header.opcode },
        };
        let unnamed = || format!("Opcode({})", header.opcode).into();
        let start = self.fields.iter().find_map(|(name, value)| match value {
            Value::Int(start) if **name == *"InitialTime" => Some(*start),
            _ => None,
        });
        Decoded {
            kind,
            time: clock.to_file_time(timestamp),
            timestamp,
            processor,
            process_id: self.process_id.unwrap_or(u32::MAX),
            thread_id: self.thread_id.unwrap_or(u32::MAX),
            provider: self.class,
            provider_name: self.class_name.or_else(|| {
                let [_, group] = header.hook?.to_le_bytes();
                Some(format!("Kernel({group:#04x})").into())
            }),
            descriptor: EventDescriptor {
                id: header.hook.unwrap_or(header.message),
                version: u8::try_from(header.version).unwrap_or(u8::MAX),
                level: header.level,
                opcode: header.opcode,
                ..EventDescriptor::default()
            },
            event_name: Some(self.event_name.unwrap_or_else(unnamed)),
            level_name: self.format.as_ref().and_then(|format| format.level.clone()),
            keywords: Keywords {
                names: self.format.iter().filter_map(|format| format.flags.clone()).collect(),
                unnamed: 0,
            },
            // This name best shows the user where a message comes from.
            task_name: self.format.as_ref().and_then(|format| format.function.clone()),
            message: self.message,
            fields: self.fields,
            leftover: self.leftover,
            problems: self.problems,
            duration: start.and_then(|start| clock.between(start, timestamp)),
            ..Decoded::default()
        }
    }
}

/// Decodes a record of a kernel event, classic event or WPP message. Returns `None` if the record
/// has another form or is shorter than its header.
#[must_use]
pub fn decode(record: &[u8]) -> Option<Record> {
    decode_with(RecordHeader::parse(record)?, record)
}

pub fn decode_with(header: RecordHeader, record: &[u8]) -> Option<Record> {
    let payload = record.get(header.payload..)?;
    Some(if header.form == Form::Wpp {
        message(header, payload)
    } else {
        classified(header, payload)
    })
}

/// Decodes a record of a trace like [`decode()`]. If the record does not imply a pointer size, the
/// trace's applies.
#[must_use]
pub fn decode_record(record: &RecordRef<'_>) -> Option<Record> {
    decode_with(RecordHeader::from_record(record)?, record.bytes)
}

/// Returns the classes with known layouts.
#[must_use]
pub fn classes() -> &'static [Class] {
    classes::all()
}

/// Returns a record's hook: its own, or the hook of a classic event's kernel class.
fn hook_of(header: &RecordHeader) -> Option<u16> {
    header.hook.or_else(|| classes::by_guid(header.guid?)?.hook(header.opcode))
}

/// Returns the class of an event record that can be a classic event: relogged traces store classic
/// and kernel events with an `EVENT_HEADER`, the id 0 and the class's GUID.
fn class_of_event(event: &EventRef<'_>) -> Option<&'static Class> {
    if event.descriptor.id != 0 || event.item(ext_type::EVENT_SCHEMA_TL).is_some() {
        return None;
    }
    classes::by_guid(event.provider)
}

/// Decodes an event record by its class. Returns `None` if the class is unknown.
pub fn decode_event(
    event: &EventRef<'_>,
    classes: &Classes,
    code_page: CodePage,
) -> Option<Record> {
    let is_classic = event.descriptor.id == 0 && event.item(ext_type::EVENT_SCHEMA_TL).is_none();
    let class =
        class_of_event(event).or_else(|| classes.get(event.provider).filter(|_| is_classic));
    let header = RecordHeader { code_page, ..RecordHeader::of_event(event) };
    Some(classified_by(Some(class?), header, event.user_data))
}

/// Returns true if an event record was decoded with a schema.
pub const fn is_described(decoded: &Decoded) -> bool {
    decoded.event_name.is_some() || decoded.message.is_some() || !decoded.fields.is_empty()
}

/// Returns an event record as decoded or, if its class is known, as an event of its class.
pub fn or_by_class(
    decoded: Decoded,
    event: &EventRef<'_>,
    clock: &Clock,
    catalog: &Catalog,
) -> Decoded {
    let Some(found) = decode_event(event, catalog.classes(), catalog.code_page()) else {
        return decoded;
    };
    let found = found.into_decoded(clock, event.processor, event.timestamp);
    Decoded {
        descriptor: decoded.descriptor,
        channel_name: decoded.channel_name,
        level_name: decoded.level_name,
        activity: decoded.activity,
        related_activity: decoded.related_activity,
        stack: decoded.stack,
        ..found
    }
}

/// The group of thread events.
const THREAD_GROUP: u8 = 0x05;

/// Decodes a payload with an event's layouts. Returns `None` if the version is unknown.
fn attempt(event: &Event, header: &RecordHeader, payload: &[u8]) -> Option<payload::Attempt> {
    let version = u8::try_from(header.version).ok()?;
    payload::decode(&event.of_version(version), payload, header.pointer_size, header.code_page)
}

/// Returns the class of a record.
fn class_of(header: &RecordHeader) -> Option<&'static Class> {
    match (header.hook, header.guid) {
        (Some(hook), _) => classes::by_hook(hook),
        (None, Some(guid)) if header.form != Form::Wpp => classes::by_guid(guid),
        (None, _) => None,
    }
}

/// Returns the event that a record's class defines, with the record's header and the offset of its
/// payload.
fn event_of(record: &RecordRef<'_>) -> Option<(&'static Event, RecordHeader, usize)> {
    // An event record's header has a different form from the other records' headers.
    let of_event = record.event().and_then(|event| {
        class_of_event(&event)?;
        let start = record.bytes.len().checked_sub(event.user_data.len())?;
        Some((RecordHeader::of_event(&event), start))
    });
    let header = of_event.or_else(|| {
        let header = RecordHeader::from_record(record)?;
        Some((header, header.payload))
    });
    let (header, start) = header?;
    Some((class_of(&header)?.event(header.opcode)?, header, start))
}

/// Returns true if a record's class has events with the addresses of network adapters.
pub fn can_have_hardware_addresses(record: &RecordRef<'_>) -> bool {
    let class = match record.kind() {
        None => record.event_without_time().map(|event| event.provider),
        Some(OtherKind::Classic { class }) => Some(class),
        Some(OtherKind::System { hook } | OtherKind::CompactSystem { hook }) => {
            classes::by_hook(hook).map(|class| class.guid)
        }
        _ => None,
    };
    class.is_some_and(classes::has_hardware_addresses)
}

/// Returns the addresses in the fields of a record that contain the address of a network adapter.
pub fn hardware_addresses(record: &RecordRef<'_>) -> Vec<Address> {
    let found = event_of(record).and_then(|(event, header, start)| {
        let payload = record.bytes.get(start..)?;
        let places = attempt(event, &header, payload)?.hardware.into_iter();
        Some(places.filter_map(|place| address(payload.get(place)?)).collect())
    });
    found.unwrap_or_default()
}

/// Replaces the hardware addresses in a decoded record, and returns its bytes with zeros in their
/// place. Returns `None` if it has none. If no layout fits, hides the whole payload.
pub fn hide_hardware_addresses(record: &RecordRef<'_>, decoded: &mut Decoded) -> Option<Vec<u8>> {
    if !classes::has_hardware_addresses(decoded.provider) {
        return None;
    }
    let (event, header, start) = event_of(record)?;
    if !event.has_hardware_addresses() {
        return None;
    }
    let mut payload = record.bytes.get(start..)?.to_vec();
    let whole = 0..payload.len();
    let attempt = attempt(event, &header, &payload);
    let places = match attempt {
        Some(attempt) if attempt.error.is_none() => attempt.hardware,
        _ => vec![whole],
    };
    for place in places {
        payload.get_mut(place).into_iter().flatten().for_each(|byte| *byte = 0);
    }
    for (name, value) in &mut decoded.fields {
        if payload::HARDWARE.contains(&&**name) {
            *value = Value::Text("(hidden)".to_owned());
        }
    }
    let leftover = payload.len().saturating_sub(decoded.leftover.len());
    decoded.leftover = payload.get(leftover..).unwrap_or_default().to_vec();
    Some([record.bytes.get(..start)?, &payload].concat())
}

/// Returns the offsets of clock readings and durations in a record's payload, as [`decode()`] finds
/// them. If the version is unknown, the payload is assumed to start with a reading if it does in
/// another version of the event.
pub fn clock_values(record: &RecordRef<'_>) -> Vec<(usize, Type)> {
    let Some((event, header, start)) = event_of(record) else {
        return Vec::new();
    };
    let payload = record.bytes.get(start..).unwrap_or_default();
    let found = match attempt(event, &header, payload) {
        Some(attempt) => attempt.clock_values,
        None if event.starts_with_ticks() && payload.len() >= 8 => vec![(0, Type::Ticks)],
        None => Vec::new(),
    };
    let found = found.into_iter();
    found.map(|(at, kind)| (start + at, kind)).collect()
}

/// Decodes a record of a kernel event or classic event.
fn classified(header: RecordHeader, payload: &[u8]) -> Record {
    classified_by(class_of(&header), header, payload)
}

/// Decodes a record according to a class.
fn classified_by(class: Option<&Class>, header: RecordHeader, payload: &[u8]) -> Record {
    let event = class.and_then(|class| class.event(header.opcode));
    let is_of_system = class.is_some_and(|class| classes::by_guid(class.guid).is_some());
    let guid = class.map(|class| class.guid).or(header.guid);
    let mut record = Record {
        class: guid.unwrap_or_default(),
        class_name: class.map(|class| Arc::clone(&class.name)),
        event_name: event.map(|event| Arc::clone(&event.name)),
        ..Record::new(header)
    };
    let attempt = event.and_then(|event| attempt(event, &header, payload));
    if let Some(attempt) = attempt {
        record.pointer_size = attempt.pointer_size;
        record.fields = attempt.fields;
        record.leftover = payload.get(attempt.used..).unwrap_or_default().to_vec();
        record.problems.extend(match attempt.error {
            Some(error) => Some(Problem::Payload(error)),
            None if record.leftover.is_empty() => None,
            None => Some(Problem::Surplus { bytes: record.leftover.len() }),
        });
        from_payload(&mut record);
    } else {
        record.leftover = payload.to_vec();
        let known = event.and_then(Event::last_version);
        record.problems.extend(match known {
            Some(last) if is_of_system => {
                Some(Problem::UnknownVersion { version: header.version, last })
            }
            _ if payload.is_empty() => None,
            _ if header.hook.is_some() || is_of_system => Some(Problem::UnknownKernelEvent),
            _ => Some(Problem::NoClass),
        });
    }
    record
}

/// Takes the process and thread from the payload if the header has none. Except in context
/// switches, the payload of a Thread event contains the affected thread, not the running one.
fn from_payload(record: &mut Record) {
    if record.process_id.is_some() && record.thread_id.is_some() {
        return;
    }
    let found = hook_of(&record.header);
    let [_, group] = found.unwrap_or_default().to_le_bytes();
    if group == THREAD_GROUP && found != Some(hook::CSWITCH) {
        return;
    }
    let mut process = None;
    let mut thread = None;
    for (_, value) in &record.fields {
        match value {
            Value::ProcessId(id) if process.is_none() => process = u32::try_from(*id).ok(),
            Value::ThreadId(id) if thread.is_none() => thread = u32::try_from(*id).ok(),
            _ => {}
        }
    }
    record.process_id = record.process_id.or(process);
    record.thread_id = record.thread_id.or(thread);
}

/// Decodes a WPP message; the file does not contain the types of its arguments.
fn message(header: RecordHeader, payload: &[u8]) -> Record {
    let number = |value: u32| Value::UInt(value.into());
    let mut fields = Fields::new();
    let parts = [
        ("Sequence", header.wpp.sequence.map(number)),
        ("ComponentId", header.wpp.component.map(|id| Value::Hex(id.into()))),
        ("Arguments", Some(Value::Binary(payload.to_vec()))),
    ];
    for (name, value) in parts {
        fields.extend(value.map(|value| (name.into(), value)));
    }
    Record {
        class_name: Some("WPP".into()),
        event_name: Some(format!("Message{}", header.message).into()),
        fields,
        ..Record::new(header)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::header::LogFileHeader;
    use crate::read::{Event, TraceFile};
    use crate::record::{EncodedRecord, EventDescriptor, EventRecord, ExtendedItem};
    use crate::write::{Buffer, Finish, KernelRecord, LogFile};

    #[test]
    fn an_event_of_a_class_has_the_id_0_and_no_schema() {
        let process: Guid = "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c".parse().unwrap();
        let names = |provider, id, extended| {
            let event = Event {
                record: EventRecord {
                    provider,
                    descriptor: EventDescriptor { id, opcode: 1, ..EventDescriptor::default() },
                    extended,
                    ..EventRecord::default()
                },
                ..Event::default()
            };
            let found = decode_event(&event.view(), &Classes::default(), CodePage::default());
            found.map(|found| [found.class_name, found.event_name].map(Option::unwrap_or_default))
        };
        let expected = ["Process", "Start"].map(Arc::from);
        assert_eq!(names(process, 0, vec![]), Some(expected));
        assert_eq!(names(process, 1, vec![]), None);
        assert_eq!(names(Guid::from_u128(1), 0, vec![]), None);
        let schema = ExtendedItem { ext_type: ext_type::EVENT_SCHEMA_TL, data: vec![4, 0, 0, 0] };
        assert_eq!(names(process, 0, vec![schema]), None);
    }

    #[test]
    fn the_guid_of_a_wpp_message_is_of_no_class() {
        let process: Guid = "3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c".parse().unwrap();
        let mut header = RecordHeader::parse(
            &crate::write::WppRecord { guid: Some(process), ..Default::default() }
                .encode()
                .unwrap(),
        )
        .unwrap();
        assert_eq!(header.guid, Some(process));
        assert!(class_of(&header).is_none());
        header.form = Form::Classic;
        assert!(class_of(&header).is_some());
    }

    #[test]
    fn a_record_of_an_unknown_version_has_a_clock_reading_if_the_event_starts_with_one() {
        let values = |hook, version, length| {
            let record =
                KernelRecord { hook, version, payload: vec![0; length], ..KernelRecord::default() };
            let record = EncodedRecord::try_from(&record).unwrap();
            let header = LogFileHeader { buffer_size: 0x1000, ..LogFileHeader::default() };
            let mut buffer = Buffer::new(0x1000, 0);
            buffer.try_append_record(&record, 1).unwrap();
            let mut log = LogFile::create(Cursor::new(Vec::new()), header).unwrap();
            log.append(&buffer, 5).unwrap();
            let file = log.finish(Finish::default()).unwrap().into_inner();
            let mut file = TraceFile::new(Cursor::new(file)).unwrap();
            let mut records = file.records();
            let record = records.next().unwrap().unwrap();
            let start = record.bytes.len() - length;
            let values = clock_values(&record).into_iter();
            values.map(|(at, kind)| (at - start, kind)).collect::<Vec<_>>()
        };
        // A deferred procedure call's payload starts with a reading, and a process's with an
        // address.
        let (call, process) = (0x0F42, 0x0301);
        assert_eq!(values(call, 2, 16), [(0, Type::Ticks)]);
        assert_eq!(values(call, 99, 16), [(0, Type::Ticks)]);
        assert_eq!(values(call, 99, 8), [(0, Type::Ticks)]);
        assert_eq!(values(call, 99, 7), []);
        assert_eq!(values(process, 99, 16), []);
    }

    #[test]
    fn the_payload_names_the_process_or_the_thread_that_the_header_does_not() {
        let ids = |process_id, thread_id, hook| {
            let record = KernelRecord { hook, ..KernelRecord::default() };
            let header = RecordHeader::parse(&record.encode().unwrap()).unwrap();
            let mut record = classified(header, &[]);
            record.process_id = process_id;
            record.thread_id = thread_id;
            record.fields = vec![
                ("Process".into(), Value::ProcessId(1)),
                ("Thread".into(), Value::ThreadId(2)),
                ("Other".into(), Value::ThreadId(3)),
            ];
            from_payload(&mut record);
            (record.process_id, record.thread_id)
        };
        assert_eq!(ids(None, None, 0x0F42), (Some(1), Some(2)));
        assert_eq!(ids(Some(8), None, 0x0F42), (Some(8), Some(2)));
        assert_eq!(ids(None, Some(9), 0x0F42), (Some(1), Some(9)));
        assert_eq!(ids(Some(8), Some(9), 0x0F42), (Some(8), Some(9)));
        // Thread events contain the affected thread.
        assert_eq!(ids(Some(8), None, 0x0501), (Some(8), None));
    }
}
