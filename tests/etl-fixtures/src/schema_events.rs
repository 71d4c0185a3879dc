//! Schemas in the form in which merged traces contain them: `TRACE_EVENT_INFO` and `EVENT_MAP_INFO`
//! (tdh.h), and the manifests of event sources.

#![expect(missing_docs, reason = "tdh.h describes the fields")]

use etl_file::write::ClassicRecord;
use etl_file::{EventDescriptor, EventRecord, Guid, LogFileHeader};

use crate::trace::{self, Recorded};

/// The class of the events that contain schemas.
pub const METADATA: Guid = Guid::from_u128(0xbbcc_f6c1_6cd1_48c4_80ff_8394_82e3_7671);

/// A property of an event.
#[derive(Clone, Debug, Default)]
pub struct Property {
    pub name: &'static str,
    pub flags: u32,
    pub in_type: u16,
    pub out_type: u16,
    pub map: &'static str,
    pub count: u16,
    pub length: u16,
}

/// An event.
#[derive(Clone, Debug, Default)]
pub struct EventInfo {
    pub provider: Guid,
    pub descriptor: EventDescriptor,
    pub source: u32,
    pub provider_name: &'static str,
    pub event_name: &'static str,
    pub level: &'static str,
    pub channel: &'static str,
    pub keywords: &'static [&'static str],
    pub task: &'static str,
    pub opcode: &'static str,
    pub message: &'static str,
    pub properties: Vec<Property>,
    pub top_level: u32,
}

/// The strings that follow a structure, with their offsets.
struct Strings {
    start: usize,
    bytes: Vec<u8>,
}

impl Strings {
    /// Returns the offset of a string, or 0 if it is empty. The string ends with a space, like
    /// TDH's strings.
    fn put(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = self.start + self.bytes.len();
        let units = text.encode_utf16().chain([0x20, 0]);
        self.bytes.extend(units.flat_map(u16::to_le_bytes));
        u32::try_from(offset).expect("it is small")
    }

    fn list(&mut self, texts: &[&str]) -> u32 {
        let offsets: Vec<u32> = texts.iter().map(|text| self.put(text)).collect();
        if !texts.is_empty() {
            self.bytes.extend([0, 0]);
        }
        offsets.first().copied().unwrap_or(0)
    }
}

impl EventInfo {
    /// Returns the `TRACE_EVENT_INFO`.
    pub fn encode(&self) -> Vec<u8> {
        let mut texts = Strings { start: 112 + 24 * self.properties.len(), bytes: Vec::new() };
        let one = self.descriptor;
        let mut out = self.provider.to_bytes().to_vec();
        out.extend([0; 16]);
        out.extend(one.id.to_le_bytes());
        out.extend([one.version, one.channel, one.level, one.opcode]);
        out.extend(one.task.to_le_bytes());
        out.extend(one.keyword.to_le_bytes());
        let words = [
            self.source,
            texts.put(self.provider_name),
            texts.put(self.level),
            texts.put(self.channel),
            texts.list(self.keywords),
            texts.put(self.task),
            texts.put(self.opcode),
            texts.put(self.message),
            0,
            0,
            0,
            texts.put(self.event_name),
            0,
            u32::try_from(self.properties.len()).expect("few"),
            self.top_level,
            0,
        ];
        out.extend(words.into_iter().flat_map(u32::to_le_bytes));
        for property in &self.properties {
            out.extend(property.flags.to_le_bytes());
            out.extend(texts.put(property.name).to_le_bytes());
            out.extend(property.in_type.to_le_bytes());
            out.extend(property.out_type.to_le_bytes());
            out.extend(texts.put(property.map).to_le_bytes());
            out.extend(property.count.to_le_bytes());
            out.extend(property.length.to_le_bytes());
            out.extend([0; 4]);
        }
        assert_eq!(out.len(), texts.start);
        out.extend(texts.bytes);
        out
    }
}

/// Returns an `EVENT_MAP_INFO`.
pub fn map_info(name: &str, flags: u32, entries: &[(u32, &str)]) -> Vec<u8> {
    let mut texts = Strings { start: 16 + 8 * entries.len(), bytes: Vec::new() };
    let count = u32::try_from(entries.len()).expect("few");
    let mut out = Vec::new();
    let head = [texts.put(name), flags, count, 0];
    out.extend(head.into_iter().flat_map(u32::to_le_bytes));
    for (value, text) in entries {
        out.extend(texts.put(text).to_le_bytes());
        out.extend(value.to_le_bytes());
    }
    out.extend(texts.bytes);
    out
}

/// Returns the record of a classic event that contains a schema.
pub fn metadata(opcode: u8, payload: Vec<u8>, timestamp: i64) -> ClassicRecord {
    ClassicRecord { class: METADATA, opcode, timestamp, payload, ..ClassicRecord::default() }
}

/// Returns the event that contains a chunk of a manifest.
pub fn chunk(provider: Guid, process_id: u32, xml: &[u8], total: u16, number: u16) -> EventRecord {
    let mut user_data = vec![1, 1, 0, 0x5B];
    user_data.extend(total.to_le_bytes());
    user_data.extend(number.to_le_bytes());
    user_data.extend(xml);
    EventRecord {
        provider,
        process_id,
        descriptor: EventDescriptor {
            id: 0xFFFE,
            opcode: 0xFE,
            task: 0xFFFE,
            ..EventDescriptor::default()
        },
        user_data,
        ..EventRecord::default()
    }
}

/// The provider of [`sample`].
pub const PROVIDER: Guid = Guid::from_u128(0x1d5f_8a60_7d1b_4c35_9e02_51a6_0b7c_0001);

/// Returns the metadata of an event with all kinds of fields: event 5 of [`PROVIDER`].
pub fn sample() -> EventInfo {
    let plain = |name, in_type| Property { name, in_type, count: 1, ..Property::default() };
    EventInfo {
        provider: PROVIDER,
        descriptor: EventDescriptor {
            id: 5,
            version: 2,
            channel: 16,
            level: 17,
            opcode: 12,
            task: 7,
            keyword: 1 << 62 | 3,
        },
        source: 0,
        provider_name: "Contoso-Merged",
        event_name: "Transfer",
        level: "Detailed",
        channel: "Contoso-Merged/Debug",
        keywords: &["Read", "Write"],
        task: "Copying",
        opcode: "Half",
        message: "%1 bytes by %2",
        properties: vec![
            // The length of a number in bytes is always present.
            Property { length: 4, ..plain("Bytes", 8) },
            Property { map: "Kinds", length: 1, ..plain("Kind", 4) },
            Property { map: "Flags", length: 4, ..plain("Options", 20) },
            Property { length: 2, ..plain("Count", 6) },
            Property { flags: 4, count: 3, length: 2, ..plain("Sizes", 6) },
            Property { flags: 2, length: 3, ..plain("Data", 14) },
            Property { length: 3, ..plain("Tag", 1) },
            // The property is an array of two structures with two members.
            Property { flags: 1 | 0x20, in_type: 9, out_type: 2, count: 2, ..plain("Pairs", 9) },
            plain("Name", 1),
            Property { length: 2, ..plain("First", 6) },
            Property { length: 1, ..plain("Second", 4) },
        ],
        top_level: 9,
    }
}

/// Returns the user data of an event that [`sample`] describes.
pub fn sample_data() -> Vec<u8> {
    let mut data = 4096_u32.to_le_bytes().to_vec();
    data.push(2);
    data.extend(5_u32.to_le_bytes());
    data.extend(3_u16.to_le_bytes());
    data.extend([10_u16, 20, 30].into_iter().flat_map(u16::to_le_bytes));
    data.extend([0xAA, 0xBB, 0xCC]);
    data.extend("tag".encode_utf16().flat_map(u16::to_le_bytes));
    data.extend([1, 0, 2, 3, 0, 4]);
    data.extend("end\0".encode_utf16().flat_map(u16::to_le_bytes));
    data
}

/// Returns the maps of [`sample`], as the payloads of their events.
pub fn sample_maps() -> [Vec<u8>; 2] {
    let of_provider = |map: Vec<u8>| [&PROVIDER.to_bytes()[..], &map].concat();
    [
        of_provider(map_info("Kinds", 1, &[(1, "Disk"), (2, "Network")])),
        of_provider(map_info("Flags", 2, &[(1, "Now"), (4, "Later")])),
    ]
}

/// Returns a manifest of [`PROVIDER`] in which event 5 has one field.
pub fn manifest(field: &str) -> String {
    format!(
        r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
        <instrumentation><events><provider name="Contoso-Own" guid="{{{PROVIDER}}}">
        <tasks><task name="Own" value="7"/></tasks>
        <events><event value="5" version="2" template="t" task="Own"/></events>
        <templates><template tid="t"><data name="{field}" inType="win:UInt32"/></template></templates>
        </provider></events></instrumentation></instrumentationManifest>"#
    )
}

/// Returns a file whose events are described by schemas at its end, and by a manifest that is
/// written after the first event.
pub fn file() -> Vec<u8> {
    let event = EventRecord {
        provider: PROVIDER,
        descriptor: sample().descriptor,
        user_data: sample_data(),
        timestamp: 1,
        ..EventRecord::default()
    };
    let mut records = vec![event.record()];
    let [kinds, flags] = sample_maps();
    for (opcode, payload) in [(32, sample().encode()), (33, kinds), (33, flags)] {
        records.push((2, metadata(opcode, payload, 2).encode().unwrap()).record());
    }
    let source = Guid::from_bytes([9; 16]);
    let xml = manifest("Value").replace(&PROVIDER.to_string(), &source.to_string());
    let of_source =
        EventRecord { provider: source, timestamp: 3, user_data: vec![77, 0, 0, 0], ..event };
    records.push(of_source.record());
    let mut part = chunk(source, 0, xml.as_bytes(), 1, 0);
    part.timestamp = 4;
    records.push(part.record());
    trace::of_records(LogFileHeader::default(), 5, records)
}
