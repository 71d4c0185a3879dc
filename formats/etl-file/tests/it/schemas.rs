//! Tests schemas that traces themselves contain.

use std::collections::HashSet;
use std::io::Cursor;

use etl_file::decode::schemas::{Collector, Counts, Defect, SchemaError};
use etl_file::decode::{Problem, Value};
use etl_file::{
    Catalog, Decoded, Event, EventDescriptor, EventRecord, ExtendedItem, Guid, LogFileHeader,
    Pipeline, TraceFile, decode,
};
use etl_fixtures::schema_events;
use etl_fixtures::schema_events::{
    EventInfo, PROVIDER, Property, chunk, file, manifest, map_info, metadata, sample,
};
use etl_fixtures::trace;

/// Returns a catalog with the schemas in the records, the counts and the defects.
fn collect(records: &[Vec<u8>], catalog: Catalog) -> (Catalog, Counts, Vec<Defect>) {
    let mut collector = Collector::new();
    for record in records {
        collector.record(record);
    }
    let schemas = collector.finish();
    let mut catalog = catalog;
    schemas.add_to(&mut catalog);
    (catalog, schemas.counts(), schemas.defects().to_vec())
}

fn classic(opcode: u8, payload: Vec<u8>) -> Vec<u8> {
    metadata(opcode, payload, 0).encode().unwrap()
}

fn info(info: &EventInfo) -> Vec<u8> {
    classic(32, info.encode())
}

/// Returns the decoded event that a schema describes.
fn decoded(info: &EventInfo, user_data: &[u8], catalog: &Catalog) -> Decoded {
    let event = Event {
        record: EventRecord {
            provider: info.provider,
            descriptor: info.descriptor,
            user_data: user_data.to_vec(),
            ..EventRecord::default()
        },
        ..Event::default()
    };
    decode(&event, catalog)
}

fn fields(event: &Decoded) -> Vec<String> {
    let fields = event.fields.iter();
    fields.map(|(name, value)| format!("{name}={value}")).collect()
}

const DECODED: [&str; 9] = [
    "Bytes=4096",
    "Kind=Network(2)",
    "Options=Now|Later(5)",
    "Count=3",
    "Sizes=[10, 20, 30]",
    "Data=hex:aabbcc",
    "Tag=\"tag\"",
    "Pairs=[{First=1, Second=2}, {First=3, Second=4}]",
    "Name=\"end\"",
];

#[test]
fn an_event_is_decoded_by_the_schema_in_its_trace() {
    let [kinds, flags] = schema_events::sample_maps();
    // The schemas can be in any order.
    let records = [classic(33, kinds), info(&sample()), classic(33, flags)];
    let (catalog, counts, defects) = collect(&records, Catalog::new());
    assert_eq!(defects, []);
    let expected = Counts { events: 1, maps: 2, ..Counts::default() };
    assert_eq!(counts, expected);
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    assert_eq!(event.problems, []);
    assert_eq!(fields(&event), DECODED);
    assert!(event.leftover.is_empty());
    assert_eq!(event.provider_name.as_deref(), Some("Contoso-Merged"));
    assert_eq!(event.event_name.as_deref(), Some("Transfer"));
    assert_eq!(event.level_name.as_deref(), Some("Detailed"));
    assert_eq!(event.task_name.as_deref(), Some("Copying"));
    assert_eq!(event.opcode_name.as_deref(), Some("Half"));
    let keywords: Vec<&str> = event.keywords.names.iter().map(AsRef::as_ref).collect();
    assert_eq!((keywords, event.keywords.unnamed), (vec!["Read", "Write"], 0));
    assert_eq!(event.channel_name.as_deref(), Some("Contoso-Merged/Debug"));
    assert_eq!(event.message.as_deref(), Some("4096 bytes by Network"));
}

/// Returns the event record with which relogging replaces a classic record.
fn relogged(opcode: u8, payload: &[u8]) -> EventRecord {
    EventRecord {
        provider: schema_events::METADATA,
        descriptor: EventDescriptor { opcode, ..EventDescriptor::default() },
        extended: vec![ExtendedItem::related_activity(Guid::from_bytes([7; 16]))],
        user_data: payload.to_vec(),
        ..EventRecord::default()
    }
}

#[test]
fn schemas_in_event_records_are_those_of_classic_records() {
    let [kinds, flags] = schema_events::sample_maps();
    let records = [relogged(33, &kinds), relogged(32, &sample().encode()), relogged(33, &flags)];
    let encoded = records.clone().map(|record| record.encode().unwrap());
    let (catalog, counts, defects) = collect(&encoded, Catalog::new());
    assert_eq!(defects, []);
    assert_eq!((counts.events, counts.maps), (1, 2));
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    assert_eq!(fields(&event), DECODED);

    // The schema events are shown like those in classic records.
    let file = trace::of_records(LogFileHeader::default(), 1, &records);
    let mut file = TraceFile::new(Cursor::new(file)).unwrap();
    let (events, _) = trace::events(&mut file, &Pipeline::new(&Catalog::new()));
    let mut found = Vec::new();
    for (_, event) in events {
        assert_eq!(event.provider_name.as_deref(), Some("EventMetadata"));
        assert_eq!(event.problems, []);
        assert!(event.leftover.is_empty());
        found.push(event.event_name.unwrap().to_string());
    }
    assert_eq!(found, ["MapInfo", "EventInfo", "MapInfo"]);
}

#[test]
fn bytes_after_the_last_field_of_a_description_are_a_problem() {
    let (catalog, ..) = collect(&[info(&sample())], Catalog::new());
    let mut data = schema_events::sample_data();
    data.extend([1, 2, 3]);
    let event = decoded(&sample(), &data, &catalog);
    assert_eq!(event.leftover, [1, 2, 3]);
    assert_eq!(event.problems, [Problem::Surplus { bytes: 3 }]);
    assert_eq!(event.problems[0].to_string(), "3 bytes follow the last known field");
}

#[test]
fn a_map_without_its_provider_is_found_by_its_name() {
    let maps = schema_events::sample_maps().map(|map| classic(33, map[16..].to_vec()));
    let [kinds, flags] = maps;
    let (catalog, counts, _) = collect(&[info(&sample()), kinds, flags], Catalog::new());
    assert_eq!(counts.maps, 2);
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    assert_eq!(fields(&event), DECODED);
}

#[test]
fn without_its_map_a_value_is_a_number() {
    let (catalog, ..) = collect(&[info(&sample())], Catalog::new());
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    assert_eq!(fields(&event)[1..3], ["Kind=2", "Options=0x5"]);
}

#[test]
fn a_loaded_manifest_is_stronger() {
    let mut other = sample();
    other.descriptor.id = 6;
    let mut catalog = Catalog::new();
    catalog.add(&manifest("Own")).unwrap();
    let (catalog, ..) = collect(&[info(&sample()), info(&other)], catalog);
    let event = decoded(&sample(), &[1, 0, 0, 0], &catalog);
    assert_eq!(fields(&event), ["Own=1"]);
    assert_eq!(event.provider_name.as_deref(), Some("Contoso-Own"));
    assert_eq!(event.task_name.as_deref(), Some("Own"));
    // The manifest lacks this event.
    let event = decoded(&other, &schema_events::sample_data(), &catalog);
    assert_eq!(event.event_name.as_deref(), Some("Transfer"));
    assert_eq!(event.fields.len(), 9);
}

#[test]
fn a_manifest_of_an_event_source_is_put_together() {
    let xml = manifest("FromSource");
    let (first, second) = xml.as_bytes().split_at(200);
    let part = |process, xml, total, number| {
        chunk(PROVIDER, process, xml, total, number).encode().unwrap()
    };
    let mut records = vec![
        // Another process writes at the same time; the order of chunks is irrelevant.
        part(1, second, 2, 1),
        part(2, first, 2, 0),
        part(1, first, 2, 0),
        part(2, second, 2, 1),
        // The manifest is written again, for another session.
        part(1, first, 2, 0),
        part(1, second, 2, 1),
    ];
    let (catalog, counts, defects) = collect(&records, Catalog::new());
    assert_eq!(defects, []);
    let expected = Counts { manifests: 1, ..Counts::default() };
    assert_eq!(counts, expected);
    let event = decoded(&sample(), &[9, 0, 0, 0], &catalog);
    assert_eq!(fields(&event), ["FromSource=9"]);
    records.truncate(2);
    let (_, counts, defects) = collect(&records, Catalog::new());
    assert_eq!((counts.manifests, counts.defective), (0, 2));
    assert!(defects[0].to_string().ends_with("is incomplete: chunks are missing"));
    // The XML is not well-formed.
    let (_, counts, defects) = collect(&[part(1, first, 1, 0)], Catalog::new());
    assert_eq!((counts.manifests, counts.defective), (0, 1));
    assert!(matches!(&defects[0], Defect::Manifest { process: 1, .. }));
}

#[test]
fn an_event_with_a_part_of_a_manifest_is_shown_as_such() {
    let record = chunk(PROVIDER, 1, b"<a/>", 3, 1);
    let info =
        EventInfo { provider: PROVIDER, descriptor: record.descriptor, ..EventInfo::default() };
    let event = decoded(&info, &record.user_data, &Catalog::new());
    assert_eq!(event.problems, []);
    assert_eq!(event.event_name.as_deref(), Some("ManifestData"));
    let shown = ["MajorVersion=1", "MinorVersion=0", "TotalChunks=3", "ChunkNumber=1"];
    assert_eq!(fields(&event)[..4], shown);
    assert_eq!(fields(&event)[4], "Data=\"<a/>\"");
}

#[test]
fn other_records_are_ignored() {
    let mut of_another_class = metadata(32, sample().encode(), 0);
    of_another_class.class = PROVIDER;
    let mut event = chunk(PROVIDER, 1, b"<a/>", 1, 0);
    event.descriptor.task = 1;
    let records = [
        of_another_class.encode().unwrap(),
        classic(31, sample().encode()),
        event.encode().unwrap(),
        vec![],
        vec![0xFF; 8],
    ];
    let (_, counts, _) = collect(&records, Catalog::new());
    assert_eq!(counts, Counts::default());
}

#[test]
fn fields_after_one_of_unknown_size_are_left_as_bytes() {
    let mut info = sample();
    info.properties[5].flags = 0;
    info.properties[5].length = 0;
    let (catalog, ..) = collect(&[self::info(&info)], Catalog::new());
    let data = schema_events::sample_data();
    let event = decoded(&info, &data, &catalog);
    assert_eq!(event.fields.len(), 5);
    assert_eq!(event.leftover, data[17..]);
}

/// Returns the error for a damaged schema.
fn refused(payload: Vec<u8>) -> SchemaError {
    let (catalog, counts, mut defects) = collect(&[classic(32, payload)], Catalog::new());
    assert_eq!((counts.events, counts.defective), (0, 1));
    assert_eq!(catalog.providers().count(), 0);
    match defects.remove(0) {
        Defect::Event { id: 5, version: 2, why, .. } => why,
        other => panic!("{other}"),
    }
}

#[test]
fn damaged_descriptions_are_refused() {
    let whole = sample().encode();
    let put = |at: usize, value: u32| {
        let mut bytes = whole.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        refused(bytes)
    };
    let short = |present, expected| SchemaError::Short { present, expected };
    assert_eq!(refused(whole[..100].to_vec()), short(100, 112));
    let expected = 112 + 24 * 11;
    assert_eq!(refused(whole[..expected - 1].to_vec()), short(expected - 1, expected));
    assert_eq!(put(48, 4), SchemaError::Source(4));
    let present = whole.len();
    let name = |offset| SchemaError::Text { what: "property's name", offset, present };
    assert_eq!(put(112 + 4, u32::MAX), name(u32::MAX));
    let last = u32::try_from(present - 1).unwrap();
    assert_eq!(put(112 + 4, last), name(last), "no NUL follows");
    let expected = 112 + 24 * 0xFFFF_FFFF_usize;
    assert_eq!(put(100, u32::MAX), short(present, expected));
    let top = SchemaError::Index { property: 0, index: 12, count: 11 };
    assert_eq!(put(104, 12), top);
    // The count of `Sizes` refers to a property after the last one.
    let index = SchemaError::Index { property: 4, index: 11, count: 11 };
    assert_eq!(put(112 + 4 * 24 + 16, 11), index);
    // `Pairs` contains itself.
    assert_eq!(put(112 + 7 * 24 + 8, 0x0002_0007), SchemaError::Nesting);
}

#[test]
fn no_damage_makes_the_collector_panic() {
    let whole = sample().encode();
    let [map, _] = schema_events::sample_maps();
    for (opcode, whole) in [(32, whole), (33, map)] {
        for at in 0..whole.len() {
            let mut cut = Collector::new();
            cut.record(&classic(opcode, whole[..at].to_vec()));
            let _ = cut.finish();
            for value in [0, 1, 0x7F, 0xFF] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let (catalog, ..) = collect(&[classic(opcode, bytes)], Catalog::new());
                let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
                assert!(event.fields.len() <= 4096);
            }
        }
    }
}

#[test]
fn structures_that_share_members_do_not_multiply_without_limit() {
    // Each level contains the next level many times.
    let level = |start: u16, members: u16| Property {
        name: "x",
        flags: 1,
        in_type: start,
        out_type: members,
        count: 1,
        ..Property::default()
    };
    let properties = (0..600).map(|n| level(200 * (n / 200 + 1), 200));
    let info = EventInfo { properties: properties.collect(), top_level: 200, ..sample() };
    assert!(matches!(refused(info.encode()), SchemaError::Nesting | SchemaError::Index { .. }));
}

#[test]
fn maps_from_texts_are_not_used_and_damaged_ones_are_named() {
    let map = map_info("Kinds", 4, &[(1, "x")]);
    let (_, counts, defects) = collect(&[classic(33, map)], Catalog::new());
    assert_eq!((counts.maps, defects), (0, vec![]));
    let map = map_info("Kinds", 1, &[(1, "x")]);
    let (_, counts, defects) = collect(&[classic(33, map[..20].to_vec())], Catalog::new());
    assert_eq!((counts.maps, counts.defective), (0, 1));
    let defect = defects[0].to_string();
    assert!(defect.starts_with("cannot use a map in the trace: "), "{defect}");
}

#[test]
fn the_total_size_of_schemas_is_limited() {
    let mut collector = Collector::new();
    let mut large = sample();
    let mut payload = large.encode();
    payload.resize(60_000, 0);
    for id in 0..400_u16 {
        large.descriptor.id = id;
        payload[32..34].copy_from_slice(&id.to_le_bytes());
        collector.record(&classic(32, payload.clone()));
    }
    // An event source that never completes its manifest.
    for number in 0..500 {
        let guid = Guid::from_u128(number);
        let chunk = chunk(guid, 1, &vec![b' '; 0xFF00], 0xFFFF, 0);
        collector.record(&chunk.encode().unwrap());
    }
    let counts = collector.finish().counts();
    assert_eq!(counts.events, (16 << 20) / 60_000);
    assert!(counts.dropped >= 400 - counts.events + 490, "{counts}");
}

#[test]
#[ignore = "needs third-party readers; `cargo xtask test` runs it"]
fn dissect_reads_the_schemas_unchanged() {
    const SCRIPT: &str = "import sys
from dissect.etl.etl import ETL
for record in ETL(open(sys.argv[1], 'rb')):
    header = record.header
    if type(header).__name__ == 'EventTraceHeader' or not hasattr(header, 'descriptor'):
        print(bytes(header.payload).hex())
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("merged.etl");
    std::fs::write(&path, file()).unwrap();
    let script = folder.path().join("payloads.py");
    std::fs::write(&script, SCRIPT).unwrap();
    let output = etw_test_support::run_python([&script, &path]);
    let payloads: HashSet<&str> = std::str::from_utf8(&output).unwrap().lines().collect();
    let [kinds, flags] = schema_events::sample_maps();
    for payload in [sample().encode(), kinds, flags] {
        let digits: String = etl_file::internals::show::Hex(&payload).to_string();
        assert!(payloads.contains(digits.as_str()), "{digits}");
    }
}

#[test]
fn the_events_that_hold_schemas_are_no_problems() {
    let [map, _] = schema_events::sample_maps();
    let event = etl_file::internals::kernel::decode(&info(&sample())).unwrap();
    assert_eq!(event.class_name.as_deref(), Some("EventMetadata"));
    assert_eq!(event.event_name.as_deref(), Some("EventInfo"));
    assert_eq!(event.problems, []);
    assert_eq!(event.field("ProviderGuid"), Some(&Value::Guid(PROVIDER)));
    assert_eq!(event.field("EventId").unwrap().to_string(), "5");
    assert!(event.leftover.is_empty());
    let event = etl_file::internals::kernel::decode(&classic(33, map.clone())).unwrap();
    assert_eq!(event.event_name.as_deref(), Some("MapInfo"));
    assert_eq!(event.problems, []);
    assert_eq!(event.field("Data"), Some(&Value::Binary(map)));
}

#[test]
fn descriptions_of_other_sources_are_no_defects_and_hide_none() {
    let of = |source| {
        let one = EventInfo { source, ..sample() };
        info(&one)
    };
    // The trace contains one of them twice.
    let records = [of(3), of(3), of(1), of(2), of(0)];
    let (catalog, counts, defects) = collect(&records, Catalog::new());
    assert_eq!(defects, []);
    let expected = Counts { events: 1, other_sources: 3, ..Counts::default() };
    assert_eq!(counts, expected);
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    assert_eq!(event.fields.len(), 9);
}

#[test]
fn names_that_cannot_be_read_are_left_out() {
    let whole = sample().encode();
    let data = schema_events::sample_data();
    // Provider, level, channel, keywords, task, opcode, message, event, and the map of `Kind`.
    for at in [52, 56, 60, 64, 68, 72, 76, 92, 112 + 24 + 12] {
        for offset in [u32::MAX, u32::try_from(whole.len() - 1).unwrap()] {
            let mut bytes = whole.clone();
            bytes[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            let (catalog, counts, defects) = collect(&[classic(32, bytes)], Catalog::new());
            assert_eq!((counts.events, defects), (1, vec![]), "{at}");
            let event = decoded(&sample(), &data, &catalog);
            assert_eq!((event.fields.len(), event.problems), (9, vec![]), "{at}");
        }
    }
}

#[test]
fn a_list_of_keywords_may_end_with_the_data() {
    let mut bytes = sample().encode();
    let list = u32::try_from(bytes.len()).unwrap();
    bytes[64..68].copy_from_slice(&list.to_le_bytes());
    let units = "Send\0Receive\0".encode_utf16();
    bytes.extend(units.flat_map(u16::to_le_bytes));
    let (catalog, ..) = collect(&[classic(32, bytes)], Catalog::new());
    let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
    let keywords: Vec<&str> = event.keywords.names.iter().map(AsRef::as_ref).collect();
    assert_eq!(keywords, ["Send", "Receive"]);
}

#[test]
fn a_custom_schema_is_no_map() {
    let mut info = sample();
    info.properties[1].flags = 0x80;
    let [kinds, _] = schema_events::sample_maps();
    let records = [self::info(&info), classic(33, kinds)];
    let (catalog, counts, _) = collect(&records, Catalog::new());
    assert_eq!(counts.events, 1);
    let event = decoded(&info, &schema_events::sample_data(), &catalog);
    assert_eq!(fields(&event)[1], "Kind=2");
}

#[test]
fn the_manifests_of_an_event_source_in_several_processes_complete_one_another() {
    let part =
        |process, xml: &str| chunk(PROVIDER, process, xml.as_bytes(), 1, 0).encode().unwrap();
    let five = manifest("Five");
    let six = manifest("Six").replace("value=\"5\"", "value=\"6\"");
    let of_six =
        EventInfo { descriptor: EventDescriptor { id: 6, ..sample().descriptor }, ..sample() };
    for records in [[part(1, &five), part(2, &six)], [part(1, &six), part(2, &five)]] {
        let (catalog, counts, defects) = collect(&records, Catalog::new());
        assert_eq!((counts.manifests, defects), (2, vec![]));
        let one = decoded(&sample(), &[9, 0, 0, 0], &catalog);
        assert_eq!(fields(&one), ["Five=9"]);
        let other = decoded(&of_six, &[8, 0, 0, 0], &catalog);
        assert_eq!(fields(&other), ["Six=8"]);
    }
    // If two schemas for an event contradict each other, the last one is used.
    for names in [["Old", "New"], ["New", "Old"]] {
        let records = names.map(|name| part(1, &manifest(name)));
        let (catalog, counts, defects) = collect(&records, Catalog::new());
        assert_eq!((counts.manifests, counts.defective), (2, 1));
        let expected = Defect::Contradiction { provider: PROVIDER, id: 5, version: 2 };
        assert_eq!(defects, [expected]);
        let event = decoded(&sample(), &[9, 0, 0, 0], &catalog);
        assert_eq!(fields(&event), [format!("{}=9", names[1])]);
    }
}

#[test]
fn the_first_map_of_a_name_is_used() {
    let map = |text| {
        let map = map_info("Kinds", 1, &[(2, text)]);
        classic(33, [&PROVIDER.to_bytes()[..], &map].concat())
    };
    for [first, second] in [["Alpha", "Beta"], ["Beta", "Alpha"]] {
        let records = [info(&sample()), map(first), map(second)];
        let (catalog, ..) = collect(&records, Catalog::new());
        let event = decoded(&sample(), &schema_events::sample_data(), &catalog);
        assert_eq!(fields(&event)[1], format!("Kind={first}(2)"));
    }
}

#[test]
fn an_event_without_a_name_is_named_after_its_task_and_opcode() {
    let name = |task, opcode, value| {
        let mut one = EventInfo { event_name: "", task, opcode, ..sample() };
        one.descriptor.opcode = value;
        let (catalog, ..) = collect(&[info(&one)], Catalog::new());
        let event = decoded(&one, &schema_events::sample_data(), &catalog);
        event.event_name.map(|name| name.to_string())
    };
    assert_eq!(name("Copying", "Half", 12).as_deref(), Some("Copying/Half"));
    assert_eq!(name("Copying", "Info", 0).as_deref(), Some("Copying"));
    assert_eq!(name("Copying", "", 12).as_deref(), Some("Copying"));
    assert_eq!(name("", "Half", 12), None);
}

#[test]
fn an_incomplete_copy_of_a_complete_manifest_is_no_defect() {
    let xml = manifest("FromSource");
    let (first, second) = xml.as_bytes().split_at(200);
    let part = |process, number: u16| {
        let xml = if number == 0 { first } else { second };
        chunk(PROVIDER, process, xml, 2, number).encode().unwrap()
    };
    // Two interleaved copies, and a truncated copy.
    for numbers in [&[0, 0, 1, 1][..], &[0, 1, 0]] {
        let mut records: Vec<_> = numbers.iter().map(|number| part(1, *number)).collect();
        let (_, counts, defects) = collect(&records, Catalog::new());
        assert_eq!((counts.manifests, defects), (1, vec![]));
        // Another process's manifest cannot be assumed to be the same.
        records.push(part(2, 0));
        let (_, counts, _) = collect(&records, Catalog::new());
        assert_eq!((counts.manifests, counts.defective), (1, 1));
    }
}

#[test]
fn the_schemas_of_a_file_are_gathered_from_all_of_its_records() {
    let mut file = TraceFile::new(Cursor::new(file())).unwrap();
    let counts = etl_file::decode::schemas::collect(&mut file).unwrap().counts();
    assert_eq!((counts.events, counts.maps, counts.manifests), (1, 2, 1));
}

#[test]
fn a_field_is_an_array_by_its_flag_or_by_its_count() {
    let mut info = sample();
    // The flag for a fixed count.
    info.properties[1].flags = 0x20;
    info.properties[4].flags = 0;
    let (catalog, ..) = collect(&[self::info(&info)], Catalog::new());
    let event = decoded(&info, &schema_events::sample_data(), &catalog);
    assert_eq!(event.problems, []);
    let shown = |at: usize| event.fields[at].1.to_string();
    assert_eq!(shown(1), "[2]");
    assert_eq!(shown(4), "[10, 20, 30]");
    assert_eq!(shown(3), "3");
}
